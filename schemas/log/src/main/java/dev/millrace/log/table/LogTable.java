package dev.millrace.log.table;

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
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A table on the log: topic of one partition, text keys, the last value of a key counts.
 *
 * <p>{@link #append} is a compare-and-set over the whole table: it reads to the end, asks what to write, and
 * writes it only if nobody else wrote in between. Writers exclude each other by a transactional id that they
 * share: opening a transaction fences whoever was there before, so what was read stays true until either our
 * records are committed or we are fenced ourselves and begin again.
 *
 * <p>Thread-safe. Every call ends within the time limit, or throws a KafkaException that says what it waited for.
 */
public final class LogTable implements AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(200);
    /** Short, because a fetch that waits for records is not woken by the mark of a commit. */
    private static final int FETCH_WAIT_MS = 10;

    private static final long MAX_PAUSE_MS = 100;

    private final Map<String, Object> clientProperties;
    private final String topic;
    private final TopicPartition partition;
    private final long timeoutMs;
    private final BiConsumer<String, byte[]> onRecord;
    private final KafkaConsumer<byte[], byte[]> consumer;

    /**
     * Opens the table without reading from it yet.
     *
     * @param clientProperties how to reach the cluster
     * @param timeoutMs limit of every call
     * @param onRecord called with each committed record in order, key and value; the value is null where a key was
     *     deleted. Called by whoever calls {@link #catchUp} or {@link #append}, never by two at once
     */
    public LogTable(
            Map<String, Object> clientProperties, String topic, long timeoutMs, BiConsumer<String, byte[]> onRecord) {
        this.clientProperties = Map.copyOf(clientProperties);
        this.topic = topic;
        this.partition = new TopicPartition(topic, 0);
        this.timeoutMs = timeoutMs;
        this.onRecord = onRecord;
        Map<String, Object> reading = new HashMap<>(clientProperties);
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", false);
        reading.put("auto.offset.reset", "earliest");
        reading.put("allow.auto.create.topics", false);
        reading.put("default.api.timeout.ms", Math.toIntExact(timeoutMs));
        reading.put("request.timeout.ms", Math.toIntExact(timeoutMs));
        reading.put("fetch.max.wait.ms", FETCH_WAIT_MS);
        reading.remove("group.id");
        this.consumer = new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.assign(List.of(partition));
    }

    /** Passes on every record that was committed before this call and was not passed on yet. */
    public synchronized void catchUp() {
        readTo(consumer.endOffsets(List.of(partition), Duration.ofMillis(timeoutMs))
                .get(partition));
    }

    private void readTo(long end) {
        Duration limit = Duration.ofMillis(timeoutMs);
        long deadline = System.nanoTime() + limit.toNanos();
        while (consumer.position(partition, limit) < end) {
            if (System.nanoTime() - deadline > 0) {
                throw new KafkaException("topic " + topic + " could not be read to its end at offset " + end
                        + " within " + timeoutMs + " ms; reached " + consumer.position(partition, limit));
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                String key = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
                onRecord.accept(key, record.value());
            }
        }
    }

    /**
     * Appends what {@code decide} gives after having read everything, as one transaction.
     *
     * @param decide called at least once, and again after whatever somebody else may have written in the meantime; an
     *     empty map writes nothing
     */
    public synchronized void append(Supplier<Map<String, byte[]>> decide) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        catchUp();
        while (!decide.get().isEmpty() && !appended(decide, deadline)) {
            letOthersFinish();
            catchUp();
        }
    }

    @Override
    public synchronized void close() {
        consumer.close(CloseOptions.timeout(Duration.ofMillis(timeoutMs)));
    }

    /** One attempt; false if another writer came in between. */
    private boolean appended(Supplier<Map<String, byte[]>> decide, long deadline) {
        try (KafkaProducer<byte[], byte[]> producer = writer()) {
            producer.initTransactions();
            catchUp();
            Map<String, byte[]> entries = decide.get();
            if (!entries.isEmpty()) {
                // by offset: a commit is answered before its end is visible to readers
                readTo(write(producer, entries) + 1);
            }
            return true;
        } catch (KafkaException e) {
            if (!isFenced(e)) {
                throw e;
            }
            if (System.nanoTime() - deadline > 0) {
                throw new KafkaException(
                        "topic " + topic + " could not be written within " + timeoutMs
                                + " ms: other writers came in between again and again",
                        e);
            }
            return false;
        }
    }

    private KafkaProducer<byte[], byte[]> writer() {
        Map<String, Object> writing = new HashMap<>(clientProperties);
        writing.put("transactional.id", topic + ".writer");
        writing.put("acks", "all");
        writing.put("max.block.ms", timeoutMs);
        writing.put("transaction.timeout.ms", Math.toIntExact(timeoutMs));
        writing.put("request.timeout.ms", Math.toIntExact(Math.max(1, timeoutMs / 2)));
        writing.put("delivery.timeout.ms", Math.toIntExact(timeoutMs));
        writing.put("linger.ms", 0);
        return new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** A while of its own for each writer, so that two that fence each other do not go on doing so. */
    private void letOthersFinish() {
        try {
            Thread.sleep(ThreadLocalRandom.current().nextLong(MAX_PAUSE_MS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new KafkaException("interrupted while writing to " + topic, e);
        }
    }

    /** Throws also if one of the sends failed. */
    private void commit(KafkaProducer<byte[], byte[]> producer) {
        try {
            producer.commitTransaction();
        } catch (AuthorizationException e) {
            throw e;
        } catch (KafkaException e) {
            throw new UncertainCommitException(topic, e);
        }
    }

    /** The offset of the last record. */
    private long write(KafkaProducer<byte[], byte[]> producer, Map<String, byte[]> entries) {
        producer.beginTransaction();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        entries.forEach((key, value) ->
                sent.add(producer.send(new ProducerRecord<>(topic, 0, key.getBytes(StandardCharsets.UTF_8), value))));
        commit(producer);
        long last = 0;
        for (Future<RecordMetadata> one : sent) {
            last = Math.max(last, offset(one));
        }
        return last;
    }

    /** Whether another writer came in between; the producer says so in several ways. */
    private static boolean isFenced(Throwable failure) {
        for (Throwable e = failure; e != null; e = e.getCause()) {
            if (e instanceof ProducerFencedException
                    || e instanceof InvalidProducerEpochException
                    || e instanceof UncertainCommitException) {
                return true;
            }
        }
        return false;
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

    /**
     * A commit that failed, possibly after it took place: being fenced while committing shows as any of several
     * errors, down to an unexpected one of the coordinator. The next attempt reads what is there and decides anew.
     */
    private static final class UncertainCommitException extends KafkaException {
        private static final long serialVersionUID = 1L;

        UncertainCommitException(String topic, KafkaException cause) {
            super("a transaction on " + topic + " was not committed: " + cause.getMessage(), cause);
        }
    }
}
