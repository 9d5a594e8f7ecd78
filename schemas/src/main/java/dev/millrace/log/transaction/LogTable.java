package dev.millrace.log.transaction;

import dev.millrace.log.ClientKind;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * A table on the log: topic of one partition, text keys, the last value of a key counts.
 *
 * <p>{@link #append} is a compare-and-set over the whole table: it reads to the end, asks what to write, and
 * writes it only if nobody else wrote in between. Writers exclude each other by a transactional id that they
 * share: opening a transaction fences the previous writer, so what was read stays true until either our
 * records are committed or we are fenced ourselves and begin again.
 *
 * <p>Thread-safe. Every call ends within the time limit, or throws a KafkaException that says what it waited for. An append that
 * other writers interrupt takes several limits, since an attempt on a slow machine takes much of one.
 */
public final class LogTable implements AutoCloseable {
    /** Short, because a fetch that waits for records is not woken by the mark of a commit. */
    private static final int FETCH_WAIT_MS = 10;
    /** Limits that an append lasts while other writers come in between. */
    private static final int LIMITS_OF_CONTENTION = 4;

    private final Map<String, Object> clientProperties;
    private final String topic;
    private final TopicPartition partition;
    private final long timeoutMs;
    private final BiConsumer<String, byte[]> onRecord;
    private final LogReader log;

    /**
     * Opens the table without reading from it yet.
     *
     * @param clientProperties how to reach the cluster
     * @param timeoutMs limit of every call
     * @param onRecord called with each committed record in order, key and value; the value is null where a key was
     *     deleted. Called in {@link #catchUp} and {@link #append}, never by two threads at once
     */
    public LogTable(
            Map<String, Object> clientProperties, String topic, long timeoutMs, BiConsumer<String, byte[]> onRecord) {
        this.clientProperties = Map.copyOf(clientProperties);
        this.topic = topic;
        this.partition = new TopicPartition(topic, 0);
        this.timeoutMs = timeoutMs;
        this.onRecord = onRecord;
        Map<String, Object> reading = new HashMap<>(clientProperties);
        reading.put("allow.auto.create.topics", false);
        reading.put("default.api.timeout.ms", Math.toIntExact(timeoutMs));
        reading.put("request.timeout.ms", Math.toIntExact(timeoutMs));
        reading.put("fetch.max.wait.ms", FETCH_WAIT_MS);
        reading.remove("group.id");
        reading.put("client.id", ClientKind.id(clientProperties, topic));
        this.log = LogReader.with(reading);
        log.consumer().assign(List.of(partition));
    }

    /** The transactional id that the writers of a table share. */
    public static String transactionalId(String topic) {
        return topic + ".writer";
    }

    /** Passes on every record that was committed before this call and was not passed on yet. */
    public synchronized void catchUp() {
        readTo(log.end(partition, Duration.ofMillis(timeoutMs)));
    }

    private void readTo(long end) {
        boolean isRead = log.readTo(Map.of(partition, end), ReadLimit.within(Duration.ofMillis(timeoutMs)), record -> {
            String key = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
            onRecord.accept(key, record.value());
        });
        if (!isRead) {
            throw new KafkaException("topic " + topic + " could not be read to its end at offset " + end + " within "
                    + timeoutMs + " ms; reached " + log.position(partition));
        }
    }

    /**
     * Appends what {@code decide} gives after having read everything, as one transaction.
     *
     * @param decide called at least once, and again after each write of another process; an empty map writes nothing
     */
    public synchronized void append(Supplier<Map<String, byte[]>> decide) {
        long deadline = System.nanoTime() + LIMITS_OF_CONTENTION * TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        ContentionPause pause = new ContentionPause(ThreadLocalRandom.current()::nextLong);
        catchUp();
        long begun = System.nanoTime();
        while (!decide.get().isEmpty() && !appended(decide, deadline)) {
            long now = System.nanoTime();
            letOthersFinish(pause.nanos(now - begun, deadline - now));
            begun = System.nanoTime();
            catchUp();
        }
    }

    @Override
    public synchronized void close() {
        log.close();
    }

    /** One attempt; false if another writer came in between. */
    private boolean appended(Supplier<Map<String, byte[]>> decide, long deadline) {
        try (TransactionalWriter writer = writer()) {
            writer.fenceOthers();
            catchUp();
            Map<String, byte[]> entries = decide.get();
            if (!entries.isEmpty()) {
                // by offset: a commit is answered before its end is visible to readers
                readTo(write(writer, entries) + 1);
            }
            return true;
        } catch (FencedWriterException | UncertainCommitException e) { // what is there now says which
            if (System.nanoTime() - deadline > 0) {
                throw new KafkaException(
                        "topic " + topic + " could not be written within " + LIMITS_OF_CONTENTION * timeoutMs + " ms: "
                                + (e instanceof FencedWriterException
                                        ? "other writers wrote in between on every attempt"
                                        : "the broker did not say whether it was committed"),
                        e);
            }
            return false;
        }
    }

    private TransactionalWriter writer() {
        Map<String, Object> writing = new HashMap<>(clientProperties);
        writing.put("transactional.id", transactionalId(topic));
        writing.put("client.id", ClientKind.id(clientProperties, topic));
        writing.put("acks", "all");
        writing.put("max.block.ms", timeoutMs);
        writing.put("transaction.timeout.ms", Math.toIntExact(timeoutMs));
        writing.put("request.timeout.ms", Math.toIntExact(Math.max(1, timeoutMs / 2)));
        writing.put("delivery.timeout.ms", Math.toIntExact(timeoutMs));
        writing.put("linger.ms", 0);
        return new TransactionalWriter(() -> new AcknowledgedProducer(writing));
    }

    /** A while of its own for each writer, so that two that fence each other do not go on doing so. */
    private void letOthersFinish(long nanos) {
        try {
            TimeUnit.NANOSECONDS.sleep(nanos);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new KafkaException("interrupted while writing to " + topic, e);
        }
    }

    /** The offset of the last record. */
    private long write(TransactionalWriter writer, Map<String, byte[]> entries) {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        writer.write(out -> entries.forEach((key, value) ->
                sent.add(out.send(new ProducerRecord<>(topic, 0, key.getBytes(StandardCharsets.UTF_8), value)))));
        long last = 0;
        for (Future<RecordMetadata> one : sent) {
            last = Math.max(last, offset(one));
        }
        return last;
    }

    private long offset(Future<RecordMetadata> sent) {
        try {
            return sent.get(timeoutMs, TimeUnit.MILLISECONDS).offset();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new KafkaException("interrupted while writing to " + topic, e);
        } catch (ExecutionException | TimeoutException e) {
            throw new KafkaException("a record was not written to " + topic, e);
        }
    }
}
