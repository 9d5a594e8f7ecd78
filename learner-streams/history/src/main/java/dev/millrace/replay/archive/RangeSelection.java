package dev.millrace.replay.archive;

import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.archive.RecordedRun.Range;
import dev.millrace.schemas.AdapterBase;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.WeightsConfig;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Predicate;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Finds the offset ranges that a range of batches depends on: per partition from the first needed record to the last.
 *
 * <pre>
 *   batches            the selected ones
 *   dead letters       of batches in between that were refused
 *   prompts            of their groups, if still on the log
 *   trajectories       that the batches name
 *   rollouts           that the batches name; scores and other partners that the trajectories name
 *   training-log       the steps on them
 *   policy-versions    all
 *   weights            from the anchor of the oldest version that sampled for them, or of the oldest stored version, to
 *                      the version that the last step made
 *   optimizer-state    of the version from which the first step began
 * </pre>
 *
 * <p>Reads batches and trajectories of the range and all prompts once; holds one record, two offsets per partition and
 * the groups' names.
 */
public final class RangeSelection {
    private final RecordedRun run;
    private final WeightsConfig config;
    private final RunTopics topics;
    private final Map<TopicPartition, Range> found = new HashMap<>();

    /** @param ranges per partition; empty if not needed */
    public record Selected(Map<TopicPartition, Range> ranges, HeldRange held) {}

    private static final class Batches {
        private long first = -1;
        private long last = -1;
        private long fromVersion = Long.MAX_VALUE;
        private long toVersion = -1;
        private long oldestSampler = Long.MAX_VALUE;
        private final Set<String> groups = new HashSet<>();
    }

    /** @param config names the store of versions that are not on the log */
    public RangeSelection(RecordedRun run, WeightsConfig config) {
        this.run = run;
        this.config = config;
        this.topics = run.topics();
    }

    /**
     * @param fromOffset of a batch, inclusive
     * @param toOffset of a batch, inclusive
     * @throws ArchiveException without such a batch, or if its records are gone
     */
    public Selected select(Predicate<LearnerBatch> wanted, long fromOffset, long toOffset) {
        Batches batches = batches(wanted, fromOffset, toOffset);
        if (batches.first < 0) {
            throw new ArchiveException("the range has no batch of the run, so there is nothing to export");
        }
        letters();
        prompts(batches.groups);
        partners();
        OptionalLong lastStep = steps(batches);
        HeldRange held;
        try (RecordedVersions versions = new RecordedVersions(run, config)) {
            held = versions(versions, batches, lastStep);
        }
        return new Selected(ranges(), held);
    }

    private Map<TopicPartition, Range> ranges() {
        Map<TopicPartition, Range> ranges = new LinkedHashMap<>();
        for (String topic : topics.all()) {
            for (TopicPartition partition : run.partitions(topic)) {
                Range there = run.range(partition);
                boolean isWhole = Set.of(topics.policyVersions(), topics.files(), topics.evaluations())
                        .contains(topic);
                boolean isPart =
                        found.keySet().stream().anyMatch(any -> any.topic().equals(topic));
                if (isWhole || isPart) {
                    ranges.put(
                            partition,
                            isWhole ? there : found.getOrDefault(partition, new Range(there.from(), there.from())));
                }
            }
        }
        return ranges;
    }

    private Batches batches(Predicate<LearnerBatch> wanted, long fromOffset, long toOffset) {
        Batches batches = new Batches();
        RefusedPlaces refused = run.refused(topics.batches());
        Set<Long> seen = new HashSet<>(); // a repeated batch is a copy; nothing depends on it
        for (TopicPartition partition : run.partitions(topics.batches())) {
            Range there = run.range(partition);
            Range asked = new Range(
                    Math.max(there.from(), fromOffset),
                    toOffset == Long.MAX_VALUE ? there.end() : Math.min(there.end(), toOffset + 1));
            each(partition, asked, LearnerBatch.class, (offset, batch) -> {
                if (refused.has(partition, offset)
                        || !run.run().owns(batch.getRunId(), batch.getEpoch())
                        || !wanted.test(batch)
                        || !seen.add(batch.getBatchId())) {
                    return;
                }
                need(partition, offset);
                batches.first = batches.first < 0 ? batch.getBatchId() : Math.min(batches.first, batch.getBatchId());
                batches.last = Math.max(batches.last, batch.getBatchId());
                batches.fromVersion = Math.min(batches.fromVersion, batch.getAssembledVersion());
                batches.toVersion = Math.max(batches.toVersion, batch.getAssembledVersion());
                for (BatchEntry entry : batch.getEntries()) {
                    need(new TopicPartition(topics.trajectories(), entry.getPartition()), entry.getOffset());
                    need(new TopicPartition(topics.rollouts(), entry.getRolloutPartition()), entry.getRolloutOffset());
                    batches.groups.add(entry.getGroupId());
                    batches.oldestSampler = Math.min(batches.oldestSampler, entry.getOldestVersion());
                }
            });
        }
        return batches;
    }

    /** Without its letter, a refused batch would count in the archive. */
    private void letters() {
        run.forEach(topics.deadLetters(), record -> {
            if (RefusedPlaces.source(record).filter(this::isBatchInBetween).isPresent()) {
                need(new TopicPartition(record.topic(), record.partition()), record.offset());
            }
        });
    }

    private boolean isBatchInBetween(LogCoordinates place) {
        Range range = found.get(new TopicPartition(place.getTopic(), place.getPartition()));
        return place.getTopic().equals(topics.batches())
                && range != null
                && place.getOffset() >= range.from()
                && place.getOffset() < range.end();
    }

    /** Prompts have a shorter retention, so they may be gone. */
    private void prompts(Set<String> groups) {
        for (TopicPartition partition : run.partitions(topics.prompts())) {
            each(partition, run.range(partition), PromptRequest.class, (offset, request) -> {
                if (run.run().owns(request.getRunId(), request.getEpoch()) && groups.contains(request.getGroupId())) {
                    need(partition, offset);
                }
            });
        }
    }

    /** Partners joined into the trajectories. */
    private void partners() {
        for (TopicPartition partition : run.partitions(topics.trajectories())) {
            Range needed = found.get(partition);
            if (needed != null) {
                if (needed.from() < run.range(partition).from()) {
                    throw new ArchiveException("a batch of the range names a trajectory at " + partition + "@"
                            + needed.from() + ", and the log now begins at "
                            + run.range(partition).from() + "; choose a later range");
                }
                each(partition, needed, Trajectory.class, (offset, trajectory) -> {
                    need(trajectory.getScoreSource());
                    need(trajectory.getRewardSource());
                    need(trajectory.getReferenceSource());
                    need(trajectory.getTeacherSource());
                });
            }
        }
    }

    private OptionalLong steps(Batches batches) {
        long[] last = {-1};
        Set<Long> seen = new HashSet<>();
        for (TopicPartition partition : run.partitions(topics.trainingLog())) {
            each(partition, run.range(partition), TrainingStep.class, (offset, step) -> {
                if (run.run().owns(step.getRunId(), step.getEpoch())
                        && step.getBatchId() >= batches.first
                        && step.getBatchId() <= batches.last
                        && seen.add(step.getBatchId())) {
                    need(partition, offset);
                    last[0] = Math.max(last[0], step.getVersion());
                }
            });
        }
        return last[0] < 0 ? OptionalLong.empty() : OptionalLong.of(last[0]);
    }

    private HeldRange versions(RecordedVersions versions, Batches batches, OptionalLong lastStep) {
        long start = versions.beginningOf(batches.first).orElse(-1);
        long newest = Math.min(
                lastStep.orElse(Math.max(batches.toVersion, start)),
                versions.newest().orElse(-1));
        long oldest = Math.min(batches.oldestSampler, Math.max(0, start));
        boolean isElsewhere =
                newest >= 0 && versions.manifest(newest).getWeights().getUri() != null;
        while (!isElsewhere && oldest <= newest && !isStored(versions, oldest)) {
            oldest++;
        }
        boolean hasWeights = !isElsewhere && oldest <= newest && newest >= 0;
        if (hasWeights) {
            need(versions.manifest(anchorOf(versions.manifest(oldest))).getWeights());
            need(versions.manifest(newest).getWeights());
            baseOf(versions, newest).ifPresent(base -> need(base.getWeights()));
        }
        boolean hasOptimizer = hasWeights && start >= oldest && hasState(versions.manifest(start));
        if (hasOptimizer && versions.manifest(start).getOptimizer() != null) {
            need(versions.manifest(start).getOptimizer());
        }
        return new HeldRange(
                batches.first,
                batches.last,
                batches.fromVersion,
                batches.toVersion,
                start,
                hasWeights ? oldest : -1,
                hasWeights ? newest : -1,
                hasOptimizer ? start : -1,
                isElsewhere ? config.store() : "");
    }

    private boolean isStored(RecordedVersions versions, long version) {
        return versions.isKnown(version)
                && versions.isKnown(anchorOf(versions.manifest(version)))
                && isThere(
                        versions.manifest(anchorOf(versions.manifest(version))).getWeights())
                && baseOf(versions, version)
                        .map(base -> isThere(base.getWeights()))
                        .orElse(true);
    }

    /** Base of an adapter version; empty for others. */
    private static Optional<PolicyVersion> baseOf(RecordedVersions versions, long version) {
        AdapterBase of = versions.manifest(version).getAdapter();
        return of == null ? Optional.empty() : Optional.of(versions.manifest(of.getBaseVersion()));
    }

    private static long anchorOf(PolicyVersion manifest) {
        Long anchor = manifest.getWeights().getAnchorVersion();
        return anchor == null ? manifest.getVersion() : anchor;
    }

    private boolean hasState(PolicyVersion version) {
        return version.getOptimizer() == null ? Checkpoints.is(version) : isThere(version.getOptimizer());
    }

    private boolean isThere(TensorLocation location) {
        if (location == null || location.getUri() != null) {
            return false;
        }
        TopicPartition partition = new TopicPartition(location.getTopic(), location.getPartition());
        return run.partitions(location.getTopic()).contains(partition)
                && location.getFirstOffset() >= run.range(partition).from()
                && location.getLastOffset() < run.range(partition).end();
    }

    /** Decodable records of a range. */
    private <T extends SpecificRecord> void each(
            TopicPartition partition, Range range, Class<T> type, BiConsumer<Long, T> taker) {
        AvroRecordDeserializer<T> deserializer =
                AvroSerde.of(type, run.registry()).deserializer();
        try (RecordCursor cursor = run.read(partition, range.from())) {
            for (var next = cursor.next();
                    next.isPresent() && next.get().offset() < range.end();
                    next = cursor.next()) {
                long offset = next.get().offset();
                TopicScan.readable(deserializer, next.get()).ifPresent(record -> taker.accept(offset, record));
            }
        }
    }

    private void need(TensorLocation location) {
        TopicPartition partition = new TopicPartition(location.getTopic(), location.getPartition());
        need(partition, location.getFirstOffset());
        need(partition, location.getLastOffset());
    }

    private void need(LogCoordinates at) {
        if (at != null) {
            need(new TopicPartition(at.getTopic(), at.getPartition()), at.getOffset());
        }
    }

    /** Ignores positions outside the run. */
    private void need(TopicPartition partition, long offset) {
        if (offset < 0 || !run.partitions(partition.topic()).contains(partition)) {
            return;
        }
        found.merge(
                partition,
                new Range(offset, offset + 1),
                (a, b) -> new Range(Math.min(a.from(), b.from()), Math.max(a.end(), b.end())));
    }
}
