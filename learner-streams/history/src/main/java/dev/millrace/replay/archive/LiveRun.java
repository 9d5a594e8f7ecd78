package dev.millrace.replay.archive;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.KafkaRecordFetcher;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * A run on a cluster, live or ended.
 *
 * <p>Reads committed records without group or commits, with read rights alone. Decisions' end offsets are fixed before
 * their inputs', so that inputs are included.
 */
public final class LiveRun implements RecordedRun {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    /** Per cursor; a replay has many. */
    private static final int FETCH_BYTES = 2 << 20;
    /** Records exist already, so fetches do not wait. */
    private static final int FETCH_WAIT_MS = 10;
    /** Left to the operating system: 64 KiB would need a poll per 64 KiB. */
    private static final int RECEIVE_BUFFER = -1;

    private final LogConnection connection;
    private final Optional<String> configuration;
    private final Map<String, Long> endedAt;
    private final Map<TopicPartition, Range> ranges;

    /**
     * @param connection not closed
     * @param configuration if known
     */
    public LiveRun(LogConnection connection, Optional<String> configuration) {
        this(connection, configuration, Map.of());
    }

    /**
     * An epoch, possibly followed by another.
     *
     * @param endedAt start of the next epoch by topic and partition, as in {@link EpochLineage#beganAt}; empty if
     *     there is none
     */
    public LiveRun(LogConnection connection, Optional<String> configuration, Map<String, Long> endedAt) {
        this.endedAt = Map.copyOf(endedAt);
        this.connection = connection;
        this.configuration = configuration;
        this.ranges = readRanges();
    }

    private ConcurrentSkipListMap<TopicPartition, Range> readRanges() {
        ConcurrentSkipListMap<TopicPartition, Range> found = new ConcurrentSkipListMap<>(
                Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));
        try (LogReader log = reader()) {
            Consumer<byte[], byte[]> consumer = log.consumer();
            // lists all: describing a missing topic would create it on a cluster with auto-creation
            Set<String> known = consumer.listTopics(PATIENCE).keySet();
            for (String topic : lastFirst(connection.topics())) {
                if (connection.topics().ofPartners().contains(topic) && !known.contains(topic)) {
                    continue; // the run's topology does not join this partner
                }
                List<TopicPartition> partitions = new ArrayList<>();
                for (PartitionInfo info : consumer.partitionsFor(topic, PATIENCE)) {
                    partitions.add(new TopicPartition(topic, info.partition()));
                }
                // one topic per call: for several the client looks up leaders first, with a pause of 100 ms
                Map<TopicPartition, Long> ends = consumer.endOffsets(partitions, PATIENCE);
                Map<TopicPartition, Long> begins = consumer.beginningOffsets(partitions, PATIENCE);
                ends.forEach((partition, end) ->
                        found.put(partition, ofEpoch(partition, Objects.requireNonNull(begins.get(partition)), end)));
            }
        }
        return found;
    }

    /**
     * Adds another topic with its current records; call before the first read.
     *
     * @return whether it exists
     */
    public boolean alsoRead(String topic) {
        try (LogReader log = reader()) {
            Consumer<byte[], byte[]> consumer = log.consumer();
            if (!consumer.listTopics(PATIENCE).containsKey(topic)) {
                return false;
            }
            List<TopicPartition> partitions = consumer.partitionsFor(topic, PATIENCE).stream()
                    .map(info -> new TopicPartition(topic, info.partition()))
                    .toList();
            Map<TopicPartition, Long> begins = consumer.beginningOffsets(partitions, PATIENCE);
            consumer.endOffsets(partitions, PATIENCE)
                    .forEach((partition, end) -> ranges.putIfAbsent(
                            partition, new Range(Objects.requireNonNull(begins.get(partition)), end)));
            return true;
        }
    }

    private Range ofEpoch(TopicPartition partition, long begin, long end) {
        return Range.ofEpoch(
                topics(), lineage(), partition, begin, Math.min(end, endedAt.getOrDefault(partition.toString(), end)));
    }

    /** Each topic before its inputs. */
    private static List<String> lastFirst(RunTopics topics) {
        List<String> decided =
                List.of(topics.batches(), topics.outcomes(), topics.deadLetters(), topics.trajectories());
        List<String> order = new ArrayList<>(decided);
        topics.all().stream().filter(topic -> !decided.contains(topic)).forEach(order::add);
        return order;
    }

    private LogReader reader() {
        return new LogReader(
                connection.as("records"),
                Map.of(
                        ConsumerConfig.AUTO_OFFSET_RESET_CONFIG,
                        "none",
                        ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG,
                        FETCH_WAIT_MS,
                        ConsumerConfig.RECEIVE_BUFFER_CONFIG,
                        RECEIVE_BUFFER,
                        ConsumerConfig.FETCH_MAX_BYTES_CONFIG,
                        FETCH_BYTES,
                        ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG,
                        FETCH_BYTES));
    }

    @Override
    public RunIdentity run() {
        return connection.run();
    }

    @Override
    public EpochLineage lineage() {
        return connection.lineage();
    }

    @Override
    public RunTopics topics() {
        return connection.topics();
    }

    @Override
    public SchemaRegistry registry() {
        return connection.registry();
    }

    @Override
    public Optional<String> configuration() {
        return configuration;
    }

    @Override
    public List<TopicPartition> partitions(String topic) {
        return ranges.keySet().stream()
                .filter(partition -> partition.topic().equals(topic))
                .toList();
    }

    @Override
    public Range range(TopicPartition partition) {
        Range range = ranges.get(partition);
        if (range == null) {
            throw new IllegalArgumentException("the run has no " + partition);
        }
        return range;
    }

    @Override
    public RecordCursor read(TopicPartition partition, long from) {
        Range range = range(partition);
        return new LogCursor(reader(), partition, Math.max(from, range.from()), range.end(), PATIENCE);
    }

    @Override
    public RecordFetcher fetcher() {
        return new KafkaRecordFetcher(connection, PATIENCE);
    }

    @Override
    public boolean hasGrown() {
        // additional topics do not belong to the run
        return readRanges().entrySet().stream().anyMatch(now -> {
            Range then = ranges.get(now.getKey());
            return then != null && then.end() != now.getValue().end();
        });
    }

    @Override
    public void close() {
        // the creator of the connection closes it
    }

    /** Reads a partition between two offsets with its own consumer. */
    static final class LogCursor implements RecordCursor {
        private final LogReader log;
        private final TopicPartition partition;
        private final long end;
        private final Duration patience;
        private final Deque<ConsumerRecord<byte[], byte[]>> fetched = new ArrayDeque<>();

        /** @param log closed with this */
        LogCursor(LogReader log, TopicPartition partition, long from, long end, Duration patience) {
            this.log = log;
            this.partition = partition;
            this.end = end;
            this.patience = patience;
            log.from(partition, from);
        }

        @Override
        public Optional<ConsumerRecord<byte[], byte[]>> next() {
            if (fetched.isEmpty()
                    && !log.readUntil(
                            () -> !fetched.isEmpty() || log.position(partition) >= end,
                            ReadLimit.withoutProgress(patience),
                            fetched::add)) {
                throw new ArchiveException(
                        "no record came from " + partition + " at offset " + log.position(partition) + " for "
                                + patience.toSeconds() + " s; is the broker out of reach, or a transaction left open?");
            }
            return Optional.ofNullable(fetched.poll()).filter(record -> record.offset() < end);
        }

        @Override
        public void close() {
            log.close();
        }
    }
}
