package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks the log what there is of requests, on a thread of its own, one search at a time.
 *
 * <p>Of a request nothing will come that is not on {@code rollouts} yet, if the generators have committed an offset behind it, or
 * if it does not lie any more where it was written. A generator commits its rollouts and the offset at once, but their marks come
 * to the partitions one after the other: so the offsets are asked first, then where rollouts end with what is not committed yet,
 * and committed rollouts are read up to there. A transaction that is left open below ends no search.
 */
final class LostSamplesSearch implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LostSamplesSearch.class);
    private static final Duration STANDSTILL = Duration.ofSeconds(30);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

    /**
     * A request to look for.
     *
     * @param releases how often its group was released
     * @param floor from where on its rollouts lie; a partition that is not there, from its beginning
     */
    record Asked(
            String groupId, int releases, TopicPartition partition, long offset, Map<TopicPartition, Long> floor) {}

    /**
     * What was found.
     *
     * @param rolloutEnds where rollouts end
     * @param deadLetterEnds where dead letters end, asked after the offsets: a request that was refused is not lost
     * @param waiting requests that generators have still to answer
     * @param gone requests of which nothing will come any more
     * @param rolloutIds of these, the samples that lie on rollouts
     * @param removed rollouts that retention has removed and that may have been theirs, for a sentence; empty if none: only then
     *     is a sample lost that is not there
     */
    record Found(
            Map<TopicPartition, Long> rolloutEnds,
            Map<TopicPartition, Long> deadLetterEnds,
            List<Asked> waiting,
            List<Asked> gone,
            Set<String> rolloutIds,
            String removed) {}

    private record Readers(LogReader committed, LogReader written) {}

    private final LogConnection connection;
    private final Deserializer<Rollout> rollouts;
    private final ExecutorService thread;
    private CompletableFuture<Optional<Found>> running = CompletableFuture.completedFuture(Optional.empty());
    private volatile @Nullable Readers readers;
    private volatile boolean stopped;

    LostSamplesSearch(LogConnection connection) {
        this.connection = connection;
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        this.thread = Executors.newSingleThreadExecutor(task -> {
            Thread searching = new Thread(task, "lost-samples");
            searching.setDaemon(true); // it only reads
            return searching;
        });
    }

    boolean isBusy() {
        return !running.isDone();
    }

    /** Begins a search; none may be under way. Where nothing is asked it only says where rollouts end. */
    void begin(List<Asked> asked) {
        running = CompletableFuture.supplyAsync(() -> tried(asked), thread);
    }

    /** What the last search found; empty while it is under way, and if it did not come to an end. */
    Optional<Found> found() {
        return isBusy() ? Optional.empty() : running.join();
    }

    /** What the last search found is taken. */
    void forget() {
        running = CompletableFuture.completedFuture(Optional.empty());
    }

    private Optional<Found> tried(List<Asked> asked) {
        if (stopped) {
            return Optional.empty();
        }
        try {
            return Optional.of(search(asked, opened()));
        } catch (WakeupException e) {
            return Optional.empty(); // it is being closed
        } catch (RuntimeException e) { // admission continues, whatever is wrong with the search
            LOG.warn(
                    "what there is of requests that are overdue cannot be read now, which is tried again: {}",
                    e.toString());
            LOG.debug("what there is of requests cannot be read", e);
            closeReaders();
            return Optional.empty();
        }
    }

    private Readers opened() {
        Readers open = readers;
        if (open == null) {
            open = new Readers(
                    new LogReader(connection, Map.of("client.id", "lost-samples")),
                    new LogReader(
                            connection,
                            Map.of(
                                    "client.id",
                                    "lost-samples-ends",
                                    "group.id",
                                    connection.group("generator"),
                                    "isolation.level",
                                    "read_uncommitted"))); // a transaction under way must not be waited for
            List<TopicPartition> asked = new ArrayList<>(
                    open.written().partitionsOf(connection.topics().rollouts()));
            asked.addAll(open.written().partitionsOf(connection.topics().deadLetters()));
            open.written().consumer().assign(asked); // or each answer about them is a warning
            readers = open;
        }
        return open;
    }

    private Found search(List<Asked> asked, Readers open) {
        Set<Asked> gone = new HashSet<>(consumed(asked, open.written()));
        List<Asked> others =
                asked.stream().filter(request -> !gone.contains(request)).toList();
        Set<Asked> there = atTheirPlaces(others, open.committed());
        others.stream().filter(request -> !there.contains(request)).forEach(gone::add);

        Map<TopicPartition, Long> ends = ends(connection.topics().rollouts(), open.written());
        Map<TopicPartition, Long> deadLetters = ends(connection.topics().deadLetters(), open.written());
        if (gone.isEmpty()) {
            return new Found(ends, deadLetters, asked, List.of(), Set.of(), "");
        }
        Map<TopicPartition, Long> floor = new HashMap<>();
        ends.forEach((partition, end) -> floor.put(partition, floor(gone, partition, end)));
        String removed = removed(floor, open.written());
        Set<String> rolloutIds = removed.isEmpty() ? named(gone, floor, ends, open.committed()) : Set.of();
        return new Found(ends, deadLetters, List.copyOf(there), List.copyOf(gone), rolloutIds, removed);
    }

    private static Map<TopicPartition, Long> ends(String topic, LogReader written) {
        return written.consumer().endOffsets(written.partitionsOf(topic));
    }

    private long floor(Set<Asked> gone, TopicPartition partition, long end) {
        long beginning = connection.lineage().beginning(partition.topic(), partition.partition());
        long lowest = end;
        for (Asked request : gone) {
            lowest = Math.min(lowest, request.floor().getOrDefault(partition, beginning));
        }
        return lowest;
    }

    /** Those behind which the generators' group has committed. */
    private static List<Asked> consumed(List<Asked> asked, LogReader group) {
        if (asked.isEmpty()) {
            return List.of();
        }
        var offsets =
                group.consumer().committed(asked.stream().map(Asked::partition).collect(Collectors.toSet()));
        return asked.stream()
                .filter(request -> {
                    var next = offsets.get(request.partition());
                    return next != null && next.offset() > request.offset();
                })
                .toList();
    }

    /** Those that lie where they were written. */
    private Set<Asked> atTheirPlaces(List<Asked> asked, LogReader log) {
        Map<TopicPartition, TreeMap<Long, Asked>> places = new HashMap<>();
        asked.forEach(request -> places.computeIfAbsent(request.partition(), p -> new TreeMap<>())
                .put(request.offset(), request));
        Set<Asked> there = new HashSet<>();
        places.forEach((partition, requests) -> {
            log.consumer().assign(List.of(partition));
            long end = log.end(partition, connection.patience());
            requests.tailMap(end, true).clear(); // the log has lost its end
            requests.headMap(log.begin(partition, connection.patience()), false).clear();
            if (!requests.isEmpty()) {
                log.from(partition, requests.firstKey());
                readTo(Map.of(partition, requests.lastKey() + 1), log, record -> {
                    Asked request = requests.get(record.offset());
                    if (request != null && request.groupId().equals(key(record))) {
                        there.add(request);
                    }
                });
            }
        });
        return there;
    }

    /** What retention has removed of rollouts behind the floor. */
    private static String removed(Map<TopicPartition, Long> floor, LogReader log) {
        return log.consumer().beginningOffsets(floor.keySet()).entrySet().stream()
                .filter(begin -> begin.getValue() > floor.getOrDefault(begin.getKey(), 0L))
                .map(begin ->
                        begin.getKey() + " offsets " + floor.get(begin.getKey()) + " to " + (begin.getValue() - 1))
                .sorted()
                .collect(Collectors.joining(", "));
    }

    private Set<String> named(
            Set<Asked> gone, Map<TopicPartition, Long> floor, Map<TopicPartition, Long> ends, LogReader log) {
        Set<String> groupIds = gone.stream().map(Asked::groupId).collect(Collectors.toSet());
        Set<String> rolloutIds = new HashSet<>();
        log.consumer().assign(floor.keySet());
        floor.forEach(log.consumer()::seek);
        readTo(ends, log, record -> {
            if (groupIds.contains(key(record))) {
                rolloutId(record).ifPresent(rolloutIds::add);
            }
        });
        return rolloutIds;
    }

    private static void readTo(
            Map<TopicPartition, Long> ends, LogReader log, Consumer<ConsumerRecord<byte[], byte[]>> reader) {
        if (!log.readTo(ends, ReadLimit.withoutProgress(STANDSTILL), reader)) {
            throw new KafkaException("no record came for " + STANDSTILL.toSeconds() + " s, at " + log.progress()
                    + " of " + ends + "; a transaction may be open there");
        }
    }

    private static String key(ConsumerRecord<byte[], byte[]> record) {
        return record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
    }

    private Optional<String> rolloutId(ConsumerRecord<byte[], byte[]> record) {
        try {
            if (record.value() == null) {
                return Optional.empty(); // a record without a value is no rollout
            }
            Rollout rollout = rollouts.deserialize(record.topic(), record.value());
            return connection.run().owns(rollout.getRunId(), rollout.getEpoch())
                    ? Optional.of(rollout.getRolloutId())
                    : Optional.empty();
        } catch (MalformedRecordException e) {
            return Optional.empty(); // a dead letter, which counts for no sample that could be told
        }
    }

    private void closeReaders() {
        Readers open = readers;
        readers = null;
        if (open != null) {
            open.committed().close();
            open.written().close();
        }
    }

    @Override
    public void close() {
        stopped = true;
        Readers open = readers;
        if (open != null) {
            open.committed().wakeup();
            open.written().wakeup();
        }
        thread.execute(this::closeReaders);
        thread.shutdown();
        try {
            if (!thread.awaitTermination(CLOSE_LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                LOG.debug("the search for lost samples does not end; it is left to the end of the process");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
