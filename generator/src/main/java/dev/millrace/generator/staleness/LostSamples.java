package dev.millrace.generator.staleness;

import dev.millrace.generator.staleness.LostSamples.LostSamplesSearch.Asked;
import dev.millrace.generator.staleness.LostSamples.LostSamplesSearch.Found;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import io.micrometer.core.instrument.Counter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
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
 * Finds samples whose request or rollout the log has lost, once they have been in flight for too long, and releases them again
 * under their names.
 *
 * <p>They stay in flight meanwhile, so eta holds. If a record of one arrives after all, the first one counts and the other is a
 * duplicate. Warns the first time; a group that is lost again raises an alarm until it is settled.
 *
 * <p>A sample with a rollout but without a batch or outcome after three times the limit raises an alarm too: the log may have
 * lost its outcome. Confined to admission's thread.
 */
final class LostSamples implements AutoCloseable {
    static final String ALARM = "samples-lost";

    static final String OVERDUE = "samples-overdue";

    private static final Logger LOG = LoggerFactory.getLogger(LostSamples.class);
    /** Searches per limit. */
    private static final int LOOKS = 4;

    private final LogConnection connection;
    private final ReleaseAges ages;
    private final LostSamplesSearch search;
    private final Counter counter;
    private final long everyNanos;
    private final Set<String> lostBefore = new HashSet<>();
    /** Groups of each alarm, by partition. */
    private final Map<TopicPartition, Set<String>> alarms = new HashMap<>();

    /** Groups found by a search once; those found twice are in {@link #overdue}. */
    private final Set<String> found = new HashSet<>();

    private final Set<String> overdue = new TreeSet<>();

    private Map<TopicPartition, Long> floor = Map.of();
    private long lookedAt = System.nanoTime();

    /** @param limit time in flight after which a sample is searched for */
    LostSamples(LogConnection connection, Duration limit, Counter counter) {
        this.connection = connection;
        this.ages = new ReleaseAges(limit);
        this.search = new LostSamplesSearch(connection);
        this.counter = counter;
        this.everyNanos = limit.toNanos() / LOOKS;
    }

    /** Begins with the recorded floor; see {@link ControllerLog#rolloutFloor()}. */
    void begin(Map<TopicPartition, Long> keptFloor) {
        ages.begin(keptFloor);
        floor = keptFloor;
    }

    /** First offsets of rollouts of samples in flight, for a restart. */
    Map<TopicPartition, Long> floor() {
        return floor;
    }

    /**
     * Takes what was found, and begins the next search if it is time.
     *
     * @param isRead whether admission has read its topics up to these offsets
     */
    void look(ReleasedSamples samples, long newestVersion, Predicate<Map<TopicPartition, Long>> isRead, long nowNanos) {
        Optional<Found> answer = search.found();
        if (answer.isPresent() && isRead.test(answer.get().deadLetterEnds())) {
            search.forget();
            take(answer.get(), samples, nowNanos);
            raiseOverdue(newestVersion);
        }
        if (search.isBusy() || nowNanos - lookedAt < everyNanos) {
            return;
        }
        lookedAt = nowNanos;
        lowerWhatIsOver(samples);
        List<Asked> asked = new ArrayList<>();
        for (AdmittedGroup group : ages.overdue(samples.groupsUnderWay(), nowNanos)) {
            if (samples.wasQuarantined(group.groupId())) {
                samples.markDue(group.groupId());
            } else if (group.partition() >= 0) {
                asked.add(new Asked(
                        group.groupId(),
                        group.releases(),
                        new TopicPartition(connection.topics().prompts(), group.partition()),
                        group.offset(),
                        ages.floorOf(group.groupId())));
            }
        }
        floor = ages.floor();
        search.begin(asked);
    }

    private void take(Found answer, ReleasedSamples samples, long nowNanos) {
        ages.ended(answer.rolloutEnds());
        answer.waiting().forEach(request -> ages.looked(request.groupId(), false, nowNanos));
        boolean isSure = answer.removed().isEmpty();
        Map<TopicPartition, List<Asked>> lost = new HashMap<>();
        for (Asked request : answer.gone()) {
            long missing = missing(request, answer.rolloutIds(), samples);
            if (missing > 0) {
                lost.computeIfAbsent(request.partition(), p -> new ArrayList<>())
                        .add(request);
            }
            if (missing > 0 && isSure) {
                counter.increment(missing);
                samples.markDue(request.groupId());
                found.remove(request.groupId());
            } else {
                if (missing == 0 && !found.add(request.groupId())) {
                    overdue.add(request.groupId());
                }
                ages.looked(request.groupId(), true, nowNanos);
            }
        }
        lost.forEach((partition, requests) -> say(partition, requests, answer.removed()));
        lost.values().forEach(requests -> requests.forEach(request -> lostBefore.add(request.groupId())));
    }

    private void raiseOverdue(long newestVersion) {
        if (!overdue.isEmpty()) {
            connection
                    .alarms()
                    .raise(
                            OVERDUE,
                            connection.topics().rollouts(),
                            overdue.size() + (overdue.size() == 1 ? " group" : " groups") + ", such as "
                                    + overdue.iterator().next()
                                    + ", in flight for three times admission.release_again_after_ms, with rollouts"
                                    + " on the log but no batch, outcome or dead letter; the log may have lost"
                                    + " them, unless training is that slow",
                            connection.command("rollback --to-version " + newestVersion));
        }
    }

    /** Samples of a request that are under way since that release and have no rollout. */
    private static long missing(Asked request, Set<String> rolloutIds, ReleasedSamples samples) {
        return samples.underWay(request.groupId())
                .filter(group -> group.releases() == request.releases())
                .map(group -> group.underWay().stream()
                        .filter(sample -> !rolloutIds.contains(new SampleName(request.groupId(), sample).rolloutId()))
                        .count())
                .orElse(0L);
    }

    private void say(TopicPartition partition, List<Asked> requests, String removed) {
        LongSummaryStatistics offsets =
                requests.stream().mapToLong(Asked::offset).summaryStatistics();
        String which = requests.size() == 1
                ? "the request at offset " + offsets.getMin()
                : requests.size() + " requests at offsets " + offsets.getMin() + " to " + offsets.getMax();
        String sentence = "samples of " + which + " of " + partition + ", answered or gone, are not on "
                + connection.topics().rollouts();
        if (!removed.isEmpty()) {
            raise(
                    partition,
                    requests,
                    sentence + "; whether they existed is unknown, since retention deleted " + removed
                            + ": they stay in flight");
        } else if (requests.stream().anyMatch(request -> lostBefore.contains(request.groupId()))) {
            raise(partition, requests, sentence + ": the log lost them again; they are released again");
        } else {
            LOG.warn("{}: the log lost them; releases them again under their names", sentence);
        }
    }

    private void raise(TopicPartition partition, List<Asked> requests, String sentence) {
        requests.forEach(request ->
                alarms.computeIfAbsent(partition, p -> new HashSet<>()).add(request.groupId()));
        connection.alarms().raise(ALARM, partition.toString(), sentence, connection.command("repair"));
    }

    private void lowerWhatIsOver(ReleasedSamples samples) {
        lostBefore.removeIf(groupId -> samples.underWay(groupId).isEmpty());
        found.removeIf(groupId -> samples.underWay(groupId).isEmpty());
        if (overdue.retainAll(found) && overdue.isEmpty()) {
            connection.alarms().lower(OVERDUE, connection.topics().rollouts());
        }
        alarms.entrySet().removeIf(alarm -> {
            alarm.getValue().retainAll(lostBefore);
            if (alarm.getValue().isEmpty()) {
                connection.alarms().lower(ALARM, alarm.getKey().toString());
            }
            return alarm.getValue().isEmpty();
        });
    }

    @Override
    public void close() {
        search.close();
    }

    /**
     * Searches the log for requests and their rollouts, on a thread of its own, one search at a time.
     *
     * <p>A request yields no further rollout if the generators have committed an offset behind it, or if its record is gone. A
     * generator commits rollouts and offset in one transaction, but the markers reach the partitions one after the other. So the
     * search reads the offsets first, then the uncommitted ends of rollouts, and then committed rollouts up to these ends. An
     * open transaction below an end leaves the search incomplete.
     */
    static final class LostSamplesSearch implements AutoCloseable {
        private static final Logger LOG = LoggerFactory.getLogger(LostSamplesSearch.class);
        private static final Duration STANDSTILL = Duration.ofSeconds(30);
        private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

        /**
         * A request to look for.
         *
         * @param floor first offsets of its rollouts; a missing partition starts at its beginning
         */
        record Asked(
                String groupId, int releases, TopicPartition partition, long offset, Map<TopicPartition, Long> floor) {}

        /**
         * Result of a search.
         *
         * @param deadLetterEnds ends of dead letters, read after the offsets: a refused request is not lost
         * @param waiting requests that generators have not answered
         * @param gone requests without further rollouts
         * @param removed rollouts removed by retention that may be theirs, as a clause; only if empty are missing samples lost
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
            } catch (RuntimeException e) { // admission continues even if the search fails
                LOG.warn("the records of overdue requests cannot be read now; retrying: {}", e.toString());
                LOG.debug("the records of requests cannot be read", e);
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
            var offsets = group.consumer()
                    .committed(asked.stream().map(Asked::partition).collect(Collectors.toSet()));
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
                requests.headMap(log.begin(partition, connection.patience()), false)
                        .clear();
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
                    LOG.debug("the search for lost samples does not end; abandons it");
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Time of each group since its newest release, by a monotonic clock, and the first offsets of its rollouts.
     *
     * <p>A group that was found is searched for again, each time after twice as long. Confined to admission's thread.
     */
    static final class ReleaseAges {

        private static final class Age {
            final int releases;
            long sinceNanos;
            long waitNanos;
            Map<TopicPartition, Long> floor;

            Age(int releases, long sinceNanos, long waitNanos, Map<TopicPartition, Long> floor) {
                this.releases = releases;
                this.sinceNanos = sinceNanos;
                this.waitNanos = waitNanos;
                this.floor = floor;
            }
        }

        private final long limitNanos;
        private final Map<String, Age> ages = new HashMap<>();
        /** Ends of rollouts at the previous look: groups released since have theirs behind. */
        private Map<TopicPartition, Long> floor = Map.of();

        private Map<TopicPartition, Long> ends = Map.of();

        /** @param limit time in flight after which a group is searched for */
        ReleaseAges(Duration limit) {
            this.limitNanos = limit.toNanos();
        }

        /** Begins with the first offsets recorded by an earlier admission; a missing partition starts at its beginning. */
        void begin(Map<TopicPartition, Long> keptFloor) {
            ages.clear();
            floor = keptFloor;
            ends = keptFloor;
        }

        /**
         * Updates the ages.
         *
         * @return groups in flight for too long
         */
        List<AdmittedGroup> overdue(Collection<AdmittedGroup> underWay, long nowNanos) {
            List<AdmittedGroup> overdue = new ArrayList<>();
            Set<String> there = new HashSet<>();
            for (AdmittedGroup group : underWay) {
                there.add(group.groupId());
                Age age = ages.get(group.groupId());
                if (age == null || age.releases != group.releases()) {
                    // a group released again may have rollouts of its first release
                    Map<TopicPartition, Long> from = age == null ? floor : age.floor;
                    ages.put(group.groupId(), new Age(group.releases(), nowNanos, limitNanos, from));
                } else if (nowNanos - age.sinceNanos >= age.waitNanos) {
                    overdue.add(group);
                }
            }
            ages.keySet().retainAll(there);
            floor = ends;
            return overdue;
        }

        /** Records the ends of rollouts after a look; lowers the first offsets if the log lost its tail. */
        void ended(Map<TopicPartition, Long> rolloutEnds) {
            boolean hasLost = ends.entrySet().stream()
                    .anyMatch(end -> rolloutEnds.getOrDefault(end.getKey(), Long.MAX_VALUE) < end.getValue());
            if (hasLost) {
                floor = lower(floor, rolloutEnds);
                ages.values().forEach(age -> age.floor = lower(age.floor, rolloutEnds));
            }
            ends = rolloutEnds;
        }

        private static Map<TopicPartition, Long> lower(Map<TopicPartition, Long> of, Map<TopicPartition, Long> bound) {
            Map<TopicPartition, Long> lower = new HashMap<>();
            of.forEach((partition, offset) ->
                    lower.put(partition, Math.min(offset, bound.getOrDefault(partition, Long.MAX_VALUE))));
            return lower;
        }

        void looked(String groupId, boolean isFound, long nowNanos) {
            Age age = ages.get(groupId);
            if (age != null) {
                age.sinceNanos = nowNanos;
                age.waitNanos = isFound ? Math.min(age.waitNanos * 2, limitNanos << 10) : limitNanos;
            }
        }

        /** First offsets of a group's rollouts; a missing partition starts at its beginning. */
        Map<TopicPartition, Long> floorOf(String groupId) {
            Age age = ages.get(groupId);
            return age == null ? Map.of() : age.floor;
        }

        /** First offsets of all rollouts in flight, for the next admission. */
        Map<TopicPartition, Long> floor() {
            Map<TopicPartition, Long> lowest = new HashMap<>(floor);
            Set<Map<TopicPartition, Long>> floors = new HashSet<>();
            ages.values().forEach(age -> floors.add(age.floor));
            for (Map<TopicPartition, Long> other : floors) {
                lowest.keySet().retainAll(other.keySet());
                other.forEach(
                        (partition, offset) -> lowest.computeIfPresent(partition, (p, low) -> Math.min(low, offset)));
            }
            return lowest;
        }
    }
}
