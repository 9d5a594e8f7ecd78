package dev.millrace.topology.state;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.WriteBufferManager;

/**
 * One budget of native memory for all stores on disk of this process, however many partitions it has.
 *
 * <p>Each store has 50 MiB of blocks and up to 48 MiB of writes to itself by default, which grows with every partition.
 * Here all share one cache; index and filter blocks are in it, and writes are charged to it and bounded by half of it. The
 * budget lives as long as the process, since stores come and go with their partitions.
 */
public final class SharedRocksDbMemory implements RocksDBConfigSetter {
    /** The setting that holds the budget. */
    public static final String BYTES = "millrace.rocksdb.bytes";

    private static final double HIGH_PRIORITY = 0.1; // for index and filter blocks
    private static final int ANY_SHARDS = -1;
    private static final int WRITE_BUFFERS = 2;
    private static final Map<Long, Memory> BY_BYTES = new HashMap<>();

    private record Memory(Cache blocks, WriteBufferManager writes) {
        static Memory of(long bytes) {
            RocksDB.loadLibrary();
            Cache blocks = new LRUCache(bytes, ANY_SHARDS, false, HIGH_PRIORITY);
            return new Memory(blocks, new WriteBufferManager(bytes / 2, blocks));
        }
    }

    private static synchronized Memory memory(long bytes) {
        return BY_BYTES.computeIfAbsent(bytes, Memory::of);
    }

    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        Memory memory = memory(Long.parseLong(String.valueOf(configs.get(BYTES))));
        BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
        table.setBlockCache(memory.blocks());
        table.setCacheIndexAndFilterBlocks(true);
        table.setCacheIndexAndFilterBlocksWithHighPriority(true);
        table.setPinTopLevelIndexAndFilter(true);
        options.setTableFormatConfig(table);
        options.setWriteBufferManager(memory.writes());
        options.setMaxWriteBufferNumber(WRITE_BUFFERS);
    }

    @Override
    public void close(String storeName, Options options) {
        // what a store uses is the process's
    }
}
