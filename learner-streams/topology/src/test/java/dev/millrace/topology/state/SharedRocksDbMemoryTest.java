package dev.millrace.topology.state;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.FlushOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.WriteBufferManager;

class SharedRocksDbMemoryTest {
    private static final long BYTES = 8 << 20;

    @TempDir
    Path directory;

    /** A table that shows which cache it was given. */
    private static final class Table extends BlockBasedTableConfig {
        private Cache given;

        @Override
        public BlockBasedTableConfig setBlockCache(Cache cache) {
            given = cache;
            return super.setBlockCache(cache);
        }
    }

    private static Options options(Table table) {
        Options options = new Options().setCreateIfMissing(true).setTableFormatConfig(table);
        new SharedRocksDbMemory().setConfig("store", options, Map.of(SharedRocksDbMemory.BYTES, BYTES));
        return options;
    }

    @Test
    void shouldGiveAllStoresOneBudgetThatHoldsUnderWrites() throws Exception {
        RocksDB.loadLibrary();
        Table first = new Table();
        Table second = new Table();
        try (Options one = options(first);
                Options two = options(second);
                RocksDB a = RocksDB.open(one, directory.resolve("a").toString());
                RocksDB b = RocksDB.open(two, directory.resolve("b").toString());
                FlushOptions flush = new FlushOptions()) {
            assertThat(first.given).isInstanceOf(LRUCache.class).isSameAs(second.given);
            assertThat(one.writeBufferManager())
                    .isInstanceOf(WriteBufferManager.class)
                    .isSameAs(two.writeBufferManager());
            byte[] value = new byte[100_000];
            for (int i = 0; i < 400; i++) { // 40 MB into each, five times the budget
                byte[] key = Integer.toString(i).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
                a.put(key, value);
                b.put(key, value);
            }
            a.flush(flush);
            b.flush(flush);
            for (int i = 0; i < 400; i++) {
                assertThat(a.get(Integer.toString(i).getBytes(java.nio.charset.StandardCharsets.US_ASCII)))
                        .hasSize(100_000);
            }
            assertThat(first.given.getUsage())
                    .isPositive()
                    .isLessThan(2 * BYTES); // a block more, pinned while it is read
        }
    }
}
