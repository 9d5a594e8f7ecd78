package dev.millrace.log.deadletter;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.Admission;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which generators of a run are in quarantine, as the topic {@code admission} has it.
 *
 * <p>Follows the topic on a thread of its own from the first {@link #open()} to the last {@link #close()}; in between, what it
 * says is as new as the last record that was read, usually some tens of milliseconds. Thread-safe.
 */
public final class Quarantines implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Quarantines.class);
    private static final String KEY = "quarantine/";
    private static final Duration PAUSE = Duration.ofSeconds(1);

    private final @Nullable LogConnection connection;
    private final Map<String, Quarantine> standing = new ConcurrentHashMap<>();
    private final Set<String> lifted = ConcurrentHashMap.newKeySet();
    private int holders;
    private @Nullable Following following;

    private Quarantines(@Nullable LogConnection connection) {
        this.connection = connection;
    }

    /** Those of a run, once they are opened. */
    public static Quarantines of(LogConnection connection) {
        return new Quarantines(connection);
    }

    public static Quarantines none() {
        return new Quarantines(null);
    }

    /** The key of a generator's quarantine on the topic {@code admission}. */
    public static String key(String generatorId) {
        return KEY + generatorId;
    }

    /** Whether a key of the topic {@code admission} is that of a quarantine. */
    public static boolean isKey(String key) {
        return key.startsWith(KEY);
    }

    /**
     * Reads what is there and follows from then on; every call wants a {@link #close()}.
     *
     * @throws IllegalStateException if the topic cannot be read within the run's patience
     */
    public synchronized void open() {
        if (connection != null && holders == 0) {
            LogReader log = LogReader.following(connection.as("quarantines"));
            try {
                readAll(log, connection);
            } catch (RuntimeException e) {
                log.close();
                throw e;
            }
            begin(new Following(connection, log));
        }
        holders++;
    }

    /**
     * As {@link #open()}, and returns at once: until what is there is read, usually for some tens of milliseconds, nobody is in
     * quarantine. Where it cannot be read it is tried again for as long as this is open.
     */
    public synchronized void openSoon() {
        if (connection != null && holders == 0) {
            begin(new Following(connection, null));
        }
        holders++;
    }

    private void begin(Following follower) {
        following = follower;
        Thread thread = new Thread(follower, "quarantines");
        thread.setDaemon(true); // it only reads
        thread.start();
    }

    private void readAll(LogReader log, LogConnection from) {
        standing.clear();
        Deserializer<Admission> entries =
                AvroSerde.of(Admission.class, from.registry()).deserializer();
        List<TopicPartition> partitions = log.fromBeginning(from.topics().admission());
        Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions);
        if (!log.readTo(ends, ReadLimit.withoutProgress(from.patience()), record -> take(record, entries, from))) {
            throw new IllegalStateException("the quarantines could not be read: no record of "
                    + from.topics().admission() + " came for "
                    + from.patience().toSeconds() + " s (run.patience_seconds), at " + log.progress() + " of " + ends);
        }
        lifted.clear();
    }

    /** Follows the topic until it is stopped, and retries after any failure. */
    private final class Following implements Runnable {
        private final LogConnection from;
        private final Deserializer<Admission> entries;
        private @Nullable LogReader log;
        private boolean isOver;
        private boolean hasFailed;

        /** @param log read to what was there; null if nothing was read */
        Following(LogConnection from, @Nullable LogReader log) {
            this.from = from;
            this.log = log;
            this.entries = AvroSerde.of(Admission.class, from.registry()).deserializer();
        }

        @Override
        public void run() {
            try {
                while (!isOver()) {
                    try {
                        reader().followAtLeisure(record -> take(record, entries, from), () -> {});
                    } catch (WakeupException e) {
                        LOG.debug("no longer followed", e); // while it read what was there
                    } catch (KafkaException | IllegalStateException e) {
                        say(e);
                        Thread.sleep(PAUSE.toMillis());
                    }
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            } finally {
                end();
                closeReader();
            }
        }

        private synchronized boolean isOver() {
            return isOver;
        }

        private LogReader reader() {
            LogReader open = current();
            if (open == null) {
                open = LogReader.following(from.as("quarantines"));
                if (taken(open)) {
                    try {
                        readAll(open, from);
                    } catch (RuntimeException e) {
                        closeReader();
                        throw e;
                    }
                }
            }
            return open;
        }

        private synchronized @Nullable LogReader current() {
            return log;
        }

        private synchronized boolean taken(LogReader open) {
            log = open;
            if (isOver) {
                open.stop();
            }
            return !isOver;
        }

        private synchronized void closeReader() {
            if (log != null) {
                log.close();
                log = null;
            }
        }

        private void say(RuntimeException e) {
            if (!hasFailed) {
                LOG.warn("the quarantines cannot be read; retrying: {}", e.getMessage());
            }
            hasFailed = true;
        }

        synchronized void end() {
            isOver = true;
            if (log != null) {
                log.stop();
            }
        }
    }

    private void take(ConsumerRecord<byte[], byte[]> record, Deserializer<Admission> entries, LogConnection from) {
        String key = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
        if (!isKey(key)) {
            return;
        }
        String generatorId = key.substring(KEY.length());
        if (record.value() == null) {
            if (standing.remove(generatorId) != null) {
                lifted.add(generatorId);
            }
            return;
        }
        try {
            Admission entry = entries.deserialize(record.topic(), record.value());
            Quarantine quarantine = entry.getQuarantine();
            if (quarantine != null
                    && entry.getRunId().equals(from.run().runId())
                    && quarantine.getGeneratorId().equals(generatorId)) {
                standing.put(generatorId, quarantine);
            }
        } catch (MalformedRecordException e) {
            LOG.warn("skipped unreadable record {}@{}: {}", key, record.offset(), e.getMessage());
        }
    }

    /** The quarantine of a generator; empty if it is in none. */
    public Optional<Quarantine> of(String generatorId) {
        return Optional.ofNullable(standing.get(generatorId));
    }

    /** All of them, by generator. */
    public Map<String, Quarantine> active() {
        return new TreeMap<>(standing);
    }

    /** Generators whose quarantine was lifted since the last call, and that are in none now. */
    public Set<String> takeLifted() {
        Set<String> taken = Set.copyOf(lifted);
        lifted.removeAll(taken);
        return taken;
    }

    /** Ends following when everybody who had it opened has closed it. */
    @Override
    public synchronized void close() {
        holders--;
        Following last = following;
        if (holders == 0 && last != null) {
            following = null;
            last.end(); // its thread closes the reader
        }
    }

    /**
     * Lifts the quarantine of a generator: from now on its records count again.
     *
     * @return false if it is in none
     */
    public static boolean lift(LogConnection connection, String generatorId) {
        Quarantines now = of(connection);
        now.open();
        try (now;
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                        connection.producer(Map.of("client.id", "quarantine", "acks", "all")),
                        new ByteArraySerializer(),
                        new ByteArraySerializer())) {
            if (now.of(generatorId).isEmpty()) {
                return false;
            }
            producer.send(new ProducerRecord<>(
                            connection.topics().admission(), key(generatorId).getBytes(StandardCharsets.UTF_8), null))
                    .get();
            return true;
        } catch (ExecutionException e) {
            throw new KafkaException("the quarantine of " + generatorId + " could not be lifted", e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new KafkaException("interrupted while lifting the quarantine of " + generatorId, e);
        }
    }
}
