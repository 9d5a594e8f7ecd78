package dev.millrace.replay.retrain;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.StepFacts;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.LengthGuard;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.BatchTrajectories;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RecordedRun.Range;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.stages.TrajectoryNotes;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.LongSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/** Tries patches on the last batches of a run, next to the recorded course. Read-only. Confined to one thread. */
public final class PatchTrial {
    /** Known to a learner alone. */
    private static final Set<StageInput> NEVER = Set.of(StageInput.GRADIENT_NORMS);
    /** Offsets per batch with its transaction marker, rounded up. */
    private static final long OFFSETS = 4;

    private final RecordedRun run;
    private final Alternative ofRun;
    private final TrialLimit limit;
    private final LongSupplier nanos;
    private final Deque<Long> offsets = new ArrayDeque<>();
    private @Nullable LearnerBatch newest;

    /** @param nanos monotonic clock */
    public PatchTrial(RecordedRun run, Algorithm ofRun, TrialLimit limit, LongSupplier nanos) {
        this.run = run;
        this.ofRun = new Alternative("as recorded", ofRun);
        this.limit = limit;
        this.nanos = nanos;
        find();
    }

    private void find() {
        TopicPartition batches = run.partitions(run.topics().batches()).get(0);
        Range range = run.range(batches);
        RefusedPlaces refused = run.refused(batches.topic());
        var deserializer = AvroSerde.of(LearnerBatch.class, run.registry()).deserializer();
        long from = Math.max(range.from(), range.end() - OFFSETS * limit.batches());
        try (RecordCursor cursor = run.read(batches, from)) {
            for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                    next.isPresent() && next.get().offset() < range.end();
                    next = cursor.next()) {
                Optional<LearnerBatch> batch = TopicScan.readable(deserializer, next.get())
                        .filter(it -> run.run().owns(it.getRunId(), it.getEpoch()));
                if (batch.isPresent() && !refused.has(next.get())) {
                    newest = batch.get();
                    offsets.addLast(next.get().offset());
                }
                if (offsets.size() > limit.batches()) {
                    offsets.removeFirst();
                }
            }
        }
    }

    /** True if there is a batch. */
    public boolean isPossible() {
        return newest != null;
    }

    /**
     * An input of the algorithm that some rollout of the newest batch lacks, or all if the stage is optional.
     *
     * @throws dev.millrace.replay.archive.ArchiveException if the rollouts are deleted
     */
    public Optional<StageInput> missing(Algorithm algorithm) {
        Set<StageInput> read = algorithm.inputs();
        Optional<StageInput> never = read.stream().filter(NEVER::contains).findFirst();
        if (never.isPresent() || newest == null) {
            return never;
        }
        List<Trajectory> members;
        try (RecordFetcher fetcher = run.fetcher()) {
            members = BatchTrajectories.of(run, newest, fetcher);
        }
        if (read.contains(StageInput.OLD) && members.stream().allMatch(member -> member.getOldLogProbs() == null)) {
            return Optional.of(StageInput.OLD);
        }
        return members.stream()
                .flatMap(member -> TrajectoryNotes.of(member, read).missing().stream())
                .sorted()
                .findFirst();
    }

    /**
     * @param patched the run's algorithm with one patch each; none has {@link #missing} inputs
     * @param threads at least 1
     * @throws dev.millrace.replay.archive.ArchiveException if rollouts are deleted
     */
    public Trial of(Cause cause, List<Alternative> patched, int threads) throws InterruptedException {
        List<Alternative> all = new ArrayList<>(List.of(ofRun));
        all.addAll(patched);
        Collected collected = new Collected(cause, limit, all);
        long begin = nanos.getAsLong();
        boolean[] isCut = new boolean[1];
        if (newest != null) {
            StepRange last = new StepRange(
                    Long.MIN_VALUE,
                    Long.MAX_VALUE,
                    Long.MIN_VALUE,
                    Long.MAX_VALUE,
                    offsets.getFirst(),
                    offsets.getLast());
            new WhatIf(run, last, all)
                    .until(() ->
                            isCut[0] |= nanos.getAsLong() - begin > limit.time().toNanos())
                    .replay(threads, collected::add);
        }
        return collected.trial((nanos.getAsLong() - begin) / 1e9, isCut[0]);
    }

    private static final class Collected {
        private final Cause cause;
        private final TrialLimit limit;
        private final List<TrialCourse.Sums> sums = new ArrayList<>();
        private final List<LengthGuard> guards = new ArrayList<>();
        private final List<ControlState> guarded = new ArrayList<>();
        private long steps;
        private long rollouts;
        private long first = -1;
        private long last = -1;
        private double staleness;
        private long notAsRecorded;

        Collected(Cause cause, TrialLimit limit, List<Alternative> all) {
            this.cause = cause;
            this.limit = limit;
            for (Alternative one : all) {
                sums.add(new TrialCourse.Sums(one.name(), cause));
                guards.add(new LengthGuard(one.algorithm().lengthGuard()));
                guarded.add(ControlState.initial());
            }
        }

        void add(ReplayedStep step) {
            first = first < 0 ? step.batch().id() : first;
            last = step.batch().id();
            steps++;
            rollouts += step.figures().get(0).sequences().of();
            staleness += step.batch().stalenessMean();
            notAsRecorded += step.isAsRecorded() ? 0 : 1;
            for (int a = 0; a < sums.size(); a++) {
                sums.get(a).add(step, a, isGuarded(a, step.facts().get(a)));
            }
        }

        /** True if a length guard would lower the rate; batches without a trainable token are ignored. */
        private boolean isGuarded(int alternative, StepFacts facts) {
            OptionalDouble length = facts.responseTokens();
            if (length.isEmpty() || !(length.getAsDouble() > 0)) {
                return false;
            }
            LengthGuard.Outcome outcome = guards.get(alternative).see(length.getAsDouble(), guarded.get(alternative));
            guarded.set(alternative, outcome.state());
            return outcome.scale() < 1;
        }

        Trial trial(double seconds, boolean isCut) {
            List<TrialCourse> courses =
                    sums.stream().map(TrialCourse.Sums::course).toList();
            return new Trial(
                    cause,
                    limit,
                    new Trial.Batches(steps, rollouts, first, last, steps == 0 ? 0 : staleness / steps, notAsRecorded),
                    seconds,
                    isCut,
                    courses.get(0),
                    courses.subList(1, courses.size()));
        }
    }
}
