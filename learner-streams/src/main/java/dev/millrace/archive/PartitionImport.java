package dev.millrace.archive;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Puts the records of one partition back at their own offsets, on an empty partition.
 *
 * <p>A log has offsets at which a reader of committed records finds nothing: markers of transactions, records of aborted
 * ones, what was compacted away. They are made again so that nobody finds anything there either:
 *
 * <pre>
 *   one offset without a record behind a record    the record is a transaction of its own, whose marker takes the offset
 *   n &gt; 1 offsets without a record                 an aborted transaction of n - 1 empty records, whose marker is the last
 *   the first offset alone without a record        a tombstone without a name; the caller deletes it
 * </pre>
 *
 * <p>Every offset that the broker gives is compared with the one that is due. Confined to one thread.
 */
final class PartitionImport {
    private static final byte[] NOTHING = new byte[0];
    private static final int IN_FLIGHT = 5000;
    /** A transaction must end before the broker gives it up. */
    private static final long FILLING_OF_ONE_TRANSACTION = 100_000;
    private static final Duration MARKER_PATIENCE = Duration.ofSeconds(30);
    private static final int FRAME_BYTES = 5;

    private final Producer<byte[], byte[]> plain;
    private final Producer<byte[], byte[]> transactional;
    private final TopicPartition partition;
    private final LongSupplier end;
    private final Map<Integer, Integer> schemaIds;
    private final Deque<Sent> inFlight = new ArrayDeque<>();
    private long next;

    private record Sent(Future<RecordMetadata> at, long due) {
    }

    /**
     * @param plain without transactions
     * @param transactional initialised, with no transaction open
     * @param end where the partition ends, whatever is committed
     * @param schemaIds what becomes of the ids in the records
     */
    PartitionImport(Producer<byte[], byte[]> plain, Producer<byte[], byte[]> transactional, TopicPartition partition,
        LongSupplier end, Map<Integer, Integer> schemaIds) {
        this.plain = plain;
        this.transactional = transactional;
        this.partition = partition;
        this.end = end;
        this.schemaIds = schemaIds;
    }

    /**
     * Writes every record of the cursor, and goes on to where the exported partition ended.
     *
     * @param end offset behind the last
     * @return true if the partition begins with a tombstone that is to be deleted
     */
    boolean write(RecordCursor cursor, long end) {
        Optional<ConsumerRecord<byte[], byte[]>> record = cursor.next();
        long first = record.map(ConsumerRecord::offset).orElse(end);
        if (first == 1) {
            send(plain, new ProducerRecord<>(partition.topic(), partition.partition(), NOTHING, null));
        } else {
            leaveOut(first);
        }
        while (record.isPresent()) {
            ConsumerRecord<byte[], byte[]> here = record.get();
            record = cursor.next();
            long without = record.map(ConsumerRecord::offset).orElse(end) - here.offset() - 1;
            if (without == 1) {
                settle(0);
                transactional.beginTransaction();
                send(transactional, restored(here));
                settle(0);
                transactional.commitTransaction();
                awaitMarker();
            } else {
                send(plain, restored(here));
                leaveOut(without);
            }
        }
        settle(0);
        return first == 1;
    }

    private ProducerRecord<byte[], byte[]> restored(ConsumerRecord<byte[], byte[]> record) {
        return new ProducerRecord<>(partition.topic(), partition.partition(), record.timestamp(), record.key(),
            withOurIds(record.value()), record.headers());
    }

    /** Leaves so many offsets, none or more than one, at which nobody finds anything. */
    private void leaveOut(long count) {
        long left = count;
        while (left > 0) {
            long now = left - FILLING_OF_ONE_TRANSACTION == 1 ? left - 2 : Math.min(left, FILLING_OF_ONE_TRANSACTION);
            settle(0);
            transactional.beginTransaction();
            for (long i = 0; i < now - 1; i++) {
                send(transactional, new ProducerRecord<>(partition.topic(), partition.partition(), NOTHING, NOTHING));
            }
            settle(0);
            transactional.abortTransaction();
            awaitMarker();
            left -= now;
        }
    }

    /** The broker answers before it has written the marker; another producer's record could come before it. */
    private void awaitMarker() {
        next++;
        long deadline = System.nanoTime() + MARKER_PATIENCE.toNanos();
        long found = end.getAsLong();
        while (found < next) {
            if (System.nanoTime() - deadline > 0) {
                throw new ArchiveException("the marker of a transaction on " + partition + "@" + (next - 1)
                    + " was not written within " + MARKER_PATIENCE.toSeconds() + " s; delete the run's topics and import again");
            }
            LockSupport.parkNanos(1_000_000);
            found = end.getAsLong();
        }
        if (found > next) {
            throw new ArchiveException(partition + " ends at offset " + found + " instead of " + next
                + "; somebody else writes to the topic, so delete the run's topics and import again");
        }
    }

    private void send(Producer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) {
        inFlight.add(new Sent(producer.send(record), next++));
        settle(IN_FLIGHT);
    }

    private void settle(int left) {
        if (left == 0 && !inFlight.isEmpty()) {
            plain.flush();
            transactional.flush();
        }
        while (inFlight.size() > left) {
            Sent sent = inFlight.remove();
            try {
                long offset = sent.at().get().offset();
                if (offset != sent.due()) {
                    throw new ArchiveException("the record of " + partition + "@" + sent.due() + " came to lie at offset " + offset
                        + "; somebody else writes to the topic, so delete the run's topics and import again");
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new KafkaException("the import was interrupted", e);
            } catch (ExecutionException e) {
                throw new ArchiveException("the broker did not take the record of " + partition + "@" + sent.due() + ": "
                    + e.getCause().getMessage(), e.getCause());
            }
        }
    }

    private byte[] withOurIds(byte[] value) {
        if (value == null || value.length < FRAME_BYTES || value[0] != 0) {
            return value;
        }
        int id = ByteBuffer.wrap(value).getInt(1);
        int ours = schemaIds.getOrDefault(id, id);
        if (ours == id) {
            return value;
        }
        byte[] changed = value.clone();
        ByteBuffer.wrap(changed).putInt(1, ours);
        return changed;
    }
}
