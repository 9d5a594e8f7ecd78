package dev.millrace.audit.trace;

import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import java.time.Duration;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Time of a run's steps, from the prompt's release until a generator serves the trained version, along the last joined
 * rollout of each batch. Relies on the machines' clocks. Immutable.
 *
 * @param laps in the order of batches
 * @param incomplete steps without all records
 */
public record Laps(List<Lap> laps, int incomplete) {
    /** How long before its step a batch, and before its rollout a prompt, is searched. */
    private static final long LOOK_BACK_MS = 600_000;

    /** A part of the way. */
    public enum Hop {
        REQUEST("prompt released, until its rollout begins"),
        SAMPLING("until its last token"),
        SCORING("until it is scored: the rollout's transaction, the scorer's fetch"),
        JOIN("until its trajectory is written: the score's transaction"),
        BATCH("until its batch is written"),
        FETCH("until its step begins: the topology's transaction, the learner's queue"),
        STEP("until the new weights are there"),
        TAKE_UP("until a generator serves them: the learner's transaction, the disk, loading");

        private final String what;

        Hop(String what) {
            this.what = what;
        }

        /** End and contents of the part. */
        public String what() {
            return what;
        }

        public String key() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * @param finishedAtMs when the weights existed, Unix milliseconds
     * @param millis of each hop
     */
    public record Lap(long batchId, long version, long finishedAtMs, Map<Hop, Long> millis) {
        public long total() {
            return millis.values().stream().mapToLong(Long::longValue).sum();
        }
    }

    /** Mean time between weights; NaN with fewer than two laps. */
    public double millisPerStep() {
        return laps.size() < 2
                ? Double.NaN
                : (double) (laps.get(laps.size() - 1).finishedAtMs()
                                - laps.get(0).finishedAtMs())
                        / (laps.get(laps.size() - 1).batchId() - laps.get(0).batchId());
    }

    /**
     * @param share in (0, 1]
     * @throws NoSuchElementException without a lap
     */
    public long quantile(double share, Function<Lap, Long> of) {
        List<Long> sorted = laps.stream().map(of).sorted().toList();
        if (sorted.isEmpty()) {
            throw new NoSuchElementException("there is no lap");
        }
        return sorted.get((int) Math.ceil(share * sorted.size()) - 1);
    }

    /**
     * Reads the last steps that made a version.
     *
     * @param steps at least 1
     * @param patience longest wait without records
     * @throws dev.millrace.log.scan.ScanException if it is exceeded
     */
    public static Laps read(RunRecords records, int steps, Duration patience) {
        try (TopicScan scan = records.scan(patience)) {
            return new Reading(records, scan).read(steps);
        }
    }

    private record Place(int partition, long offset) {}

    private record Trained(TrainingStep step, Found<LearnerBatch> batch) {}

    private static final class Reading {
        private final RunRecords records;
        private final RunTopics topics;
        private final TopicScan scan;
        private final ConsistentCut cut;

        Reading(RunRecords records, TopicScan scan) {
            this.records = records;
            this.topics = records.topics();
            this.scan = scan;
            this.cut = scan.cut(List.of(
                    topics.serving(),
                    topics.trainingLog(),
                    topics.batches(),
                    topics.trajectories(),
                    topics.rollouts(),
                    topics.prompts()));
        }

        Laps read(int count) {
            NavigableMap<Long, TrainingStep> steps = steps(count);
            if (steps.isEmpty()) {
                return new Laps(List.of(), 0);
            }
            long fromMs = steps.firstEntry().getValue().getStartedAtMs() - LOOK_BACK_MS;
            Map<Long, Found<LearnerBatch>> batches = new HashMap<>();
            read(LearnerBatch.class, scan.since(cut, cut.partitions(topics.batches()), fromMs), found -> {
                if (isOwn(found.value().getRunId(), found.value().getEpoch())) {
                    batches.putIfAbsent(found.value().getBatchId(), found);
                }
            });
            List<Trained> trained = steps.values().stream()
                    .flatMap(step ->
                            Stream.ofNullable(batches.get(step.getBatchId())).map(batch -> new Trained(step, batch)))
                    .toList();
            Map<Place, Found<Trajectory>> trajectories = at(
                    Trajectory.class,
                    topics.trajectories(),
                    places(trained, entry -> new Place(entry.getPartition(), entry.getOffset())));
            Map<Place, Found<Rollout>> rollouts = at(
                    Rollout.class,
                    topics.rollouts(),
                    places(trained, entry -> new Place(entry.getRolloutPartition(), entry.getRolloutOffset())));
            Map<String, TreeSet<Long>> releases = releases(rollouts);
            NavigableMap<Long, Long> served =
                    served(steps.firstEntry().getValue().getFinishedAtMs());
            List<Lap> laps = trained.stream()
                    .flatMap(each -> lap(each, trajectories, rollouts, releases, served).stream())
                    .toList();
            return new Laps(laps, steps.size() - laps.size());
        }

        private boolean isOwn(String runId, int epoch) {
            return records.run().owns(runId, epoch);
        }

        private <T extends SpecificRecord> void read(
                Class<T> type, Map<TopicPartition, Long> from, Consumer<Found<T>> reader) {
            AvroRecordDeserializer<T> deserializer =
                    AvroSerde.of(type, records.registry()).deserializer();
            scan.readWhile(from, cut, record -> {
                TopicScan.readable(deserializer, record).ifPresent(value -> reader.accept(Found.of(value, record)));
                return true;
            });
        }

        /** By batch. Skips transaction markers and starved steps. */
        private NavigableMap<Long, TrainingStep> steps(int count) {
            NavigableMap<Long, TrainingStep> steps = new TreeMap<>();
            for (long back = 4L * count; steps.size() < count; back *= 4) {
                Map<TopicPartition, Long> from = new HashMap<>();
                boolean isAll = true;
                for (TopicPartition partition : cut.partitions(topics.trainingLog())) {
                    long begin = cut.of(partition).begin();
                    from.put(partition, Math.max(begin, cut.of(partition).end() - back));
                    isAll &= from.get(partition) == begin;
                }
                steps.clear();
                read(TrainingStep.class, from, found -> {
                    if (isOwn(found.value().getRunId(), found.value().getEpoch())
                            && !found.value().getStarved()) {
                        steps.put(found.value().getBatchId(), found.value());
                    }
                });
                if (isAll) {
                    break;
                }
            }
            while (steps.size() > count) {
                steps.pollFirstEntry();
            }
            return steps;
        }

        private static List<Place> places(List<Trained> trained, Function<BatchEntry, Place> place) {
            return trained.stream()
                    .flatMap(each -> each.batch().value().getEntries().stream())
                    .map(place)
                    .toList();
        }

        private <T extends SpecificRecord> Map<Place, Found<T>> at(Class<T> type, String topic, List<Place> places) {
            Map<TopicPartition, Long> from = new HashMap<>();
            for (Place place : places) {
                TopicPartition partition = new TopicPartition(topic, place.partition());
                if (cut.has(partition)) {
                    from.merge(partition, Math.max(cut.of(partition).begin(), place.offset()), Math::min);
                }
            }
            Map<Place, Found<T>> found = new HashMap<>();
            read(type, from, each -> found.put(new Place(each.partition(), each.offset()), each));
            return found;
        }

        /** Release times of the rollouts' prompts; several after a restart. */
        private Map<String, TreeSet<Long>> releases(Map<Place, Found<Rollout>> rollouts) {
            Map<String, TreeSet<Long>> releases = new HashMap<>();
            long fromMs = rollouts.values().stream()
                            .mapToLong(rollout -> rollout.value().getStartedAtMs())
                            .min()
                            .orElse(Long.MAX_VALUE)
                    - LOOK_BACK_MS;
            read(
                    PromptRequest.class,
                    scan.since(cut, cut.partitions(topics.prompts()), fromMs),
                    prompt -> releases.computeIfAbsent(prompt.value().getGroupId(), unseen -> new TreeSet<>())
                            .add(prompt.value().getReleasedAtMs()));
            return releases;
        }

        /** First time that each version or a newer one was served. */
        private NavigableMap<Long, Long> served(long fromMs) {
            NavigableMap<Long, Long> since = new TreeMap<>();
            read(Serving.class, scan.since(cut, cut.partitions(topics.serving()), fromMs), found -> {
                Serving serving = found.value();
                if (isOwn(serving.getRunId(), serving.getEpoch()) && serving.getRole() == ServerRole.GENERATOR) {
                    since.merge(serving.getVersion(), serving.getSinceMs(), Math::min);
                }
            });
            long first = Long.MAX_VALUE;
            for (Map.Entry<Long, Long> version : since.descendingMap().entrySet()) {
                first = Math.min(first, version.getValue());
                version.setValue(first);
            }
            return since;
        }

        private static Optional<Lap> lap(
                Trained trained,
                Map<Place, Found<Trajectory>> trajectories,
                Map<Place, Found<Rollout>> rollouts,
                Map<String, TreeSet<Long>> releases,
                NavigableMap<Long, Long> served) {
            TrainingStep step = trained.step();
            List<BatchEntry> entries = trained.batch().value().getEntries();
            Function<BatchEntry, Found<Trajectory>> joined =
                    entry -> trajectories.get(new Place(entry.getPartition(), entry.getOffset()));
            Optional<BatchEntry> last = entries.stream().anyMatch(entry -> joined.apply(entry) == null)
                    ? Optional.empty()
                    : entries.stream()
                            .max(Comparator.comparingLong(
                                    entry -> joined.apply(entry).timestampMs()));
            Map.Entry<Long, Long> taken = served.ceilingEntry(step.getVersion());
            if (last.isEmpty() || taken == null) {
                return Optional.empty();
            }
            Found<Trajectory> trajectory = joined.apply(last.get());
            Found<Rollout> rollout = rollouts.get(
                    new Place(last.get().getRolloutPartition(), last.get().getRolloutOffset()));
            if (rollout == null) {
                return Optional.empty();
            }
            Long released = releases.getOrDefault(rollout.value().getGroupId(), new TreeSet<>())
                    .floor(rollout.value().getStartedAtMs());
            if (released == null) {
                return Optional.empty();
            }
            List<Long> times = List.of(
                    released,
                    rollout.value().getStartedAtMs(),
                    rollout.value().getFinishedAtMs(),
                    trajectory.value().getScoredAtMs(),
                    trajectory.timestampMs(),
                    trained.batch().timestampMs(),
                    step.getStartedAtMs(),
                    step.getFinishedAtMs(),
                    taken.getValue());
            Map<Hop, Long> millis = new EnumMap<>(Hop.class);
            for (Hop hop : Hop.values()) {
                millis.put(hop, times.get(hop.ordinal() + 1) - times.get(hop.ordinal()));
            }
            return Optional.of(new Lap(step.getBatchId(), step.getVersion(), step.getFinishedAtMs(), millis));
        }
    }
}
