package dev.millrace.learner.batch;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Batches that came before one that is still to come, and wait for it: the record of that one may have been sent again from the
 * dead letters.
 *
 * <p>One behind which many came that go before it is out of place: nobody writes it there who counts. Of those that wait so many
 * bytes are held; what is beyond is found again on the log when it is due. Not thread-safe.
 */
final class AheadBatches {
    private static final int MANY = 8;
    private static final long CAPACITY_BYTES = 64L << 20;

    private static final class Waiting {
        private final ConsumerRecord<byte[], byte[]> record;
        private int overtaken;

        private Waiting(ConsumerRecord<byte[], byte[]> record) {
            this.record = record;
        }
    }

    private final NavigableMap<Long, Waiting> byId = new TreeMap<>();
    private long bytes;
    private boolean forgot;

    /** Has a batch wait; the first of an id stays. */
    void add(long batchId, ConsumerRecord<byte[], byte[]> record) {
        if (byId.containsKey(batchId)) {
            return;
        }
        byId.put(batchId, new Waiting(record));
        bytes += record.value().length;
        while (bytes > CAPACITY_BYTES && byId.size() > 1) {
            bytes -= byId.pollLastEntry().getValue().record.value().length;
            forgot = true;
        }
    }

    /** The one of this id, which waits no longer. */
    Optional<ConsumerRecord<byte[], byte[]>> take(long batchId) {
        Waiting found = byId.remove(batchId);
        if (found != null) {
            bytes -= found.record.value().length;
        }
        return Optional.ofNullable(found).map(waiting -> waiting.record);
    }

    /**
     * A batch was consumed that lay at this offset.
     *
     * @return those that are out of place, which wait no longer
     */
    List<ConsumerRecord<byte[], byte[]>> consumed(long offset) {
        List<ConsumerRecord<byte[], byte[]>> misplaced = new ArrayList<>();
        for (Iterator<Waiting> all = byId.values().iterator(); all.hasNext(); ) {
            Waiting waiting = all.next();
            if (waiting.record.offset() < offset && ++waiting.overtaken > MANY) {
                misplaced.add(waiting.record);
                bytes -= waiting.record.value().length;
                all.remove();
            }
        }
        return misplaced;
    }

    /** Whether some are no longer held, so that the log must be searched for them; asked once for each time. */
    boolean takeForgot() {
        boolean some = forgot;
        forgot = false;
        return some;
    }

    /** The ids that wait, lowest first. */
    List<Long> ids() {
        return List.copyOf(byId.keySet());
    }
}
