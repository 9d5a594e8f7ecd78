package dev.millrace.learner.batch;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Records that were passed on the way to others and may be asked for later, up to a number of bytes.
 *
 * <p>When there are too many bytes, those with the lowest offsets go: they were passed over longest ago, and most likely
 * belong to trajectories that no batch took. Not thread-safe.
 */
final class PassedRecords {
    private final long capacityBytes;
    private final Map<Integer, NavigableMap<Long, byte[]>> byPartition = new HashMap<>();
    private long bytes;

    PassedRecords(long capacityBytes) {
        this.capacityBytes = capacityBytes;
    }

    void keep(ConsumerRecord<byte[], byte[]> record) {
        if (record.value() == null) {
            return;
        }
        NavigableMap<Long, byte[]> kept = byPartition.computeIfAbsent(record.partition(), p -> new TreeMap<>());
        byte[] before = kept.put(record.offset(), record.value());
        bytes += record.value().length - (before == null ? 0 : before.length);
        while (bytes > capacityBytes && !kept.isEmpty()) {
            bytes -= kept.pollFirstEntry().getValue().length;
        }
    }

    /** Those of the offsets that are kept; they are not kept any longer, since a trajectory is in one batch only. */
    Map<Long, byte[]> take(int partition, Collection<Long> offsets) {
        Map<Long, byte[]> taken = new HashMap<>();
        NavigableMap<Long, byte[]> kept = byPartition.getOrDefault(partition, new TreeMap<>());
        for (long offset : offsets) {
            byte[] value = kept.remove(offset);
            if (value != null) {
                bytes -= value.length;
                taken.put(offset, value);
            }
        }
        return taken;
    }

    long bytes() {
        return bytes;
    }
}
