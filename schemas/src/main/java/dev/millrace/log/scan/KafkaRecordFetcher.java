package dev.millrace.log.scan;

import dev.millrace.log.LogConnection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Reads records again with a consumer of its own that belongs to no group.
 *
 * <p>The consumer is made at the first fetch, so a topology that never has to look back never opens it.
 */
public final class KafkaRecordFetcher implements RecordFetcher {
    /** Reading over a gap of this number of records is cheaper than a seek, which discards fetched records. */
    private static final long SEEK_OVER = 200;

    /** Requested records exist. The consumer prefetches behind them, and the next fetch waits for that answer. */
    private static final int WAIT_MS = 10;

    private final LogConnection connection;
    private final Duration patience;
    private @Nullable LogReader log;

    /** @param patience how long a fetch may go without a record */
    public KafkaRecordFetcher(LogConnection connection, Duration patience) {
        this.connection = connection;
        this.patience = patience;
    }

    @Override
    public List<ConsumerRecord<byte[], byte[]>> fetch(TopicPartition partition, long[] offsets) {
        LogReader reader = reader();
        Wanted wanted = new Wanted(offsets, reader.begin(partition, patience), reader.end(partition, patience));
        while (wanted.isOpen()) {
            reader.from(partition, wanted.offset());
            if (!reader.readUntil(
                    () -> wanted.isFarFrom(reader.position(partition)),
                    ReadLimit.withoutProgress(patience),
                    wanted::take)) {
                throw new RecordFetchException("no record came from " + partition + " at offset " + wanted.offset()
                        + " for " + patience.toSeconds()
                        + " s; is the broker out of reach, or a transaction left open?");
            }
        }
        return wanted.found;
    }

    /** What is still to be found of the offsets that were asked for. */
    private static final class Wanted {
        private final long[] offsets;
        private final long end;
        private final List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        private int next;

        Wanted(long[] offsets, long kept, long end) {
            this.offsets = offsets;
            this.end = end;
            passTo(kept);
        }

        boolean isOpen() {
            return next < offsets.length && offsets[next] < end;
        }

        long offset() {
            return offsets[next];
        }

        /** True if nothing is worth reading on for; what was passed is a transaction's marker, or compacted away. */
        boolean isFarFrom(long position) {
            passTo(position);
            return !isOpen() || offsets[next] - position > SEEK_OVER;
        }

        void take(ConsumerRecord<byte[], byte[]> record) {
            passTo(record.offset());
            if (next < offsets.length && offsets[next] == record.offset()) {
                found.add(record);
                next++;
            }
        }

        private void passTo(long offset) {
            while (next < offsets.length && offsets[next] < offset) {
                next++;
            }
        }
    }

    private LogReader reader() {
        if (log == null) {
            log = new LogReader(connection.as("fetch"), Map.of(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, WAIT_MS));
        }
        return log;
    }

    @Override
    public void close() {
        if (log != null) {
            log.close();
            log = null;
        }
    }
}
