package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.CorrectionInForce;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.DiagnosticsCourse;
import dev.millrace.corrections.diagnostics.DiagnosticsStep;
import dev.millrace.corrections.diagnostics.StepFacts;
import dev.millrace.corrections.diagnostics.TreeBounds;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageFailedException;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.StalenessLimit;
import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.replay.ReplayedStep.RescoredStep;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RecordedRun.Range;
import dev.millrace.replay.retrain.Rescorer;
import dev.millrace.replay.retrain.Rescorer.Rescored;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.stages.BatchDiagnostics;
import dev.millrace.stages.RecordedFacts;
import dev.millrace.stages.StageReports;
import dev.millrace.stages.StepDiagnostics;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Applies alternative corrections to a run's batches: same rollouts, other decisions.
 *
 * <p>Several threads decide, results come in step order, so they do not depend on the thread count. Memory holds at
 * most two steps per thread. The first alternative is the run's own, and must reproduce every recorded batch.
 */
public final class WhatIf {
    /** Longest wait for running workers at the end. */
    private static final long CLOSE_LIMIT_SECONDS = 60;

    private final RecordedRun run;
    private final StepRange range;
    private final List<AlternativeReplay> alternatives;
    private final Set<StageInput> inputs;
    private final AvroRecordDeserializer<LearnerBatch> batchReader;
    private final AvroRecordDeserializer<Trajectory> trajectoryReader;
    private final @Nullable Rescorer rescorer;
    private final boolean isLearnersDecision;
    private final List<DiagnosticsCourse> courses;
    private final LongAdder passed = new LongAdder();
    private final LongAdder tokens = new LongAdder();
    private final LongAdder untrained = new LongAdder();
    private final LongAdder copies = new LongAdder();
    private long undecided;
    private @Nullable String firstUndecided;
    private KeptBatch.@Nullable Keeper keeper;
    private @Nullable OtherRewards rewards;
    private BooleanSupplier enough = () -> false;

    /** Inputs of a diagnosis. */
    private record Seen(Optional<DiagnosticsStep> policies, StepFacts facts, CorrectionInForce inForce) {}

    /** @param alternatives the run's own first; none sees recomputed log-probs */
    public WhatIf(RecordedRun run, StepRange range, List<Alternative> alternatives) {
        this(run, range, alternatives, null, false);
    }

    /**
     * @param alternatives the run's own first; the first rescored one has the run's own corrections too
     * @param rescorer recomputes log-probs; null for none
     * @param isLearnersDecision the run's own corrections over recomputed log-probs must decide as the learner logged
     */
    public WhatIf(
            RecordedRun run,
            StepRange range,
            List<Alternative> alternatives,
            @Nullable Rescorer rescorer,
            boolean isLearnersDecision) {
        this.run = run;
        this.range = range;
        this.alternatives = alternatives.stream()
                .map(one -> new AlternativeReplay(one, alternatives.get(0)))
                .toList();
        this.courses = alternatives.stream()
                .map(one -> new DiagnosticsCourse(TreeBounds.DEFAULT))
                .toList();
        this.inputs = alternatives.stream()
                .flatMap(alternative -> alternative.algorithm().inputs().stream())
                .collect(Collectors.toUnmodifiableSet());
        this.batchReader = AvroSerde.of(LearnerBatch.class, run.registry()).deserializer();
        this.trajectoryReader = AvroSerde.of(Trajectory.class, run.registry()).deserializer();
        this.rescorer = rescorer;
        this.isLearnersDecision = isLearnersDecision;
        if (rescorer == null && alternatives.stream().anyMatch(Alternative::isRescored)) {
            throw new IllegalArgumentException(
                    "no log-prob recomputation was given for the alternative: " + alternatives);
        }
    }

    /** Batches skipped because their step is not recorded but needed. */
    public long untrained() {
        return untrained.sum();
    }

    /** Batches on the log again, decided once. */
    public long copies() {
        return copies.sum();
    }

    /** Number of batches skipped because a stage failed, and the first reason; empty if none was. */
    public Optional<String> undecided() {
        return firstUndecided == null
                ? Optional.empty()
                : Optional.of((undecided == 1
                                ? "1 batch is left out: "
                                : undecided + " batches are left out, the first of them ")
                        + firstUndecided);
    }

    public long passed() {
        return passed.sum();
    }

    public long toPass() {
        return run.partitions(run.topics().batches()).stream()
                .map(this::offsets)
                .mapToLong(r -> r.end() - r.from())
                .sum();
    }

    /** Response tokens decided so far, once for all alternatives. */
    public long tokens() {
        return tokens.sum();
    }

    private Range offsets(TopicPartition partition) {
        Range all = run.range(partition);
        long from = Math.max(all.from(), range.fromOffset());
        long end = range.toOffset() == Long.MAX_VALUE ? all.end() : Math.min(all.end(), range.toOffset() + 1);
        return new Range(from, Math.max(from, end));
    }

    private record Decided(ReplayedStep step, List<Seen> seen, List<KeptBatch> kept) {}

    /** Passes the batches of each alternative but the first to {@code taker}; call before the replay. */
    public WhatIf keeping(KeptBatch.Keeper taker) {
        keeper = taker;
        return this;
    }

    /** Rewards for alternatives with other rewards; call before the replay. */
    public WhatIf rewardedBy(OtherRewards others) {
        rewards = others;
        return this;
    }

    /** Stops reading batches once true; batches in progress are delivered. Call before the replay. */
    public WhatIf until(BooleanSupplier isEnough) {
        enough = isEnough;
        return this;
    }

    /**
     * @param threads at least 1
     * @param steps called in order on the calling thread
     */
    public void replay(int threads, Consumer<ReplayedStep> steps) throws InterruptedException {
        if (rewards == null && alternatives.stream().anyMatch(AlternativeReplay::isRewarded)) {
            throw new IllegalStateException("no other rewards were given for the alternative");
        }
        int inOrder = alternatives.stream().anyMatch(AlternativeReplay::isInOrder) ? 1 : threads;
        ExecutorService workers = Executors.newFixedThreadPool(inOrder, runnable -> new Thread(runnable, "replay"));
        try (TrajectoryFeed trajectories = new TrajectoryFeed(run);
                TrainedSteps trained = new TrainedSteps(run)) {
            Deque<Future<Decided>> underWay = new ArrayDeque<>();
            Set<Long> seen = new HashSet<>();
            RefusedPlaces refused = run.refused(run.topics().batches());
            for (TopicPartition partition : run.partitions(run.topics().batches())) {
                Range offsets = offsets(partition);
                try (RecordCursor cursor = run.read(partition, offsets.from())) {
                    long position = offsets.from();
                    for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                            next.isPresent() && next.get().offset() < offsets.end() && !enough.getAsBoolean();
                            next = cursor.next()) {
                        passed.add(next.get().offset() + 1 - position);
                        position = next.get().offset() + 1;
                        Optional<LearnerBatch> batch = refused.has(next.get()) ? Optional.empty() : batch(next.get());
                        if (batch.isPresent() && !seen.add(batch.get().getBatchId())) {
                            copies.increment();
                        } else if (batch.isPresent()
                                && rescorer != null
                                && !rescorer.knows(batch.get().getBatchId())) {
                            untrained.increment();
                        } else if (batch.isPresent()) {
                            Optional<TrainingStep> step = trained.of(batch.get().getBatchId());
                            List<ConsumerRecord<byte[], byte[]>> members = trajectories.of(batch.get());
                            underWay.add(workers.submit(() -> decide(batch.get(), step, members)));
                        }
                        while (underWay.size() > 2 * threads) {
                            hand(underWay.remove(), steps);
                        }
                    }
                    passed.add(offsets.end() - position);
                }
            }
            while (!underWay.isEmpty()) {
                hand(underWay.remove(), steps);
            }
        } finally {
            workers.shutdownNow();
            workers.awaitTermination(
                    CLOSE_LIMIT_SECONDS, TimeUnit.SECONDS); // the rescorer must not be closed during a call
        }
    }

    private static boolean hasWeights(LearnerBatch batch) {
        return batch.getEntries().stream().anyMatch(entry -> entry.getWeights() != null);
    }

    /** Empty for records of other runs, and out of range. */
    private Optional<LearnerBatch> batch(ConsumerRecord<byte[], byte[]> record) {
        return TopicScan.readable(batchReader, record)
                .filter(batch -> run.run().owns(batch.getRunId(), batch.getEpoch()) && range.contains(batch));
    }

    private Decided decide(
            LearnerBatch batch, Optional<TrainingStep> trained, List<ConsumerRecord<byte[], byte[]>> members) {
        List<Trajectory> trajectories = decoded(batch, members);
        StageFacts facts = RecordedFacts.of(batch, trajectories, inputs);
        tokens.add(facts.tokens().tokenCount());
        Optional<Rescored> rescored =
                rescorer == null ? Optional.empty() : Optional.of(rescorer.rescore(batch, trajectories, facts));
        Optional<StageFacts> rewarded =
                Optional.ofNullable(rewards).map(others -> RecordedFacts.of(batch, others.of(trajectories), inputs));
        List<DecidedFigures> figures = new ArrayList<>();
        Optional<DiagnosticsStep> recordedShow = BatchDiagnostics.of(facts);
        Optional<DiagnosticsStep> rescoredShow = rescored.flatMap(step -> BatchDiagnostics.of(step.facts()));
        List<Seen> diagnosed = new ArrayList<>();
        List<KeptBatch> kept = new ArrayList<>();
        Optional<Boolean> isAsTrained = Optional.empty();
        boolean isAsRecorded = false;
        double staleness = 0;
        long[] recordedVersions =
                trajectories.stream().mapToLong(Trajectory::getProximalVersion).toArray();
        for (int a = 0; a < alternatives.size(); a++) {
            AlternativeReplay alternative = alternatives.get(a);
            StageFacts known = alternative.isRescored()
                    ? rescored.orElseThrow().facts()
                    : alternative.isRewarded() ? rewarded.orElseThrow() : facts;
            StageFacts seen = alternative.seen(batch, known);
            Decision decision;
            try {
                decision = alternative.decide(seen);
            } catch (StageFailedException e) {
                throw new UndecidedException("batch " + batch.getBatchId() + " under " + alternative.name(), e);
            }
            figures.add(alternative.figures(seen, decision, batch));
            diagnosed.add(
                    a == 0
                            ? recorded(recordedShow, batch, trained, facts)
                            : decided(
                                    alternative.isRescored() ? rescoredShow : recordedShow,
                                    seen,
                                    decision.left(),
                                    StageReports.of(decision.outcomes())));
            if (keeper != null && a > 0) {
                kept.add(alternative.kept(
                        batch,
                        trajectories,
                        alternative.isRescored() ? rescored.orElseThrow().proximalVersions() : recordedVersions,
                        seen,
                        decision,
                        !alternative.decidesAs(alternatives.get(0)) || hasWeights(batch)));
            }
            if (a == 0) {
                isAsRecorded = AlternativeReplay.isRecorded(decision, batch);
                staleness = new StalenessLimit(Long.MAX_VALUE)
                        .maskTokens(
                                seen.versions(),
                                seen.version(),
                                new byte[seen.tokens().tokenCount()])
                        .mean();
            }
            if (alternative.isRescored() && isAsTrained.isEmpty()) {
                isAsTrained = trained.filter(step -> isLearnersDecision)
                        .map(step -> AlternativeReplay.isTrained(decision, step));
            }
        }
        double reward = batch.getEntries().stream()
                .mapToDouble(BatchEntry::getReward)
                .average()
                .orElse(0);
        Optional<Boolean> asTrained = isAsTrained;
        return new Decided(
                new ReplayedStep(
                        new ReplayedStep.Batch(
                                batch.getBatchId(),
                                batch.getAssembledVersion(),
                                batch.getAssembledAtMs(),
                                reward,
                                staleness),
                        isAsRecorded,
                        rescored.map(step -> new RescoredStep(step.agreement(), asTrained)),
                        figures,
                        List.of(),
                        List.of()),
                diagnosed,
                kept);
    }

    /** The recorded course, as the doctor sees it. */
    private static Seen recorded(
            Optional<DiagnosticsStep> show, LearnerBatch batch, Optional<TrainingStep> step, StageFacts facts) {
        int[] members = IntStream.range(0, facts.tokens().sequenceCount()).toArray();
        List<StageReport> reports = StepDiagnostics.reports(batch, step);
        return new Seen(
                show.map(one -> BatchDiagnostics.leaving(
                        one, facts, StepDiagnostics.left(facts.tokens(), batch, members, step))),
                step.map(StepDiagnostics::facts).orElseGet(() -> StepDiagnostics.facts(facts.tokens(), reports)),
                StepDiagnostics.inForce(reports));
    }

    /** No step was taken, so clipping and noise are unknown. */
    private static Seen decided(
            Optional<DiagnosticsStep> show, StageFacts facts, TokenBatch left, List<StageReport> reports) {
        return new Seen(
                show.map(one -> BatchDiagnostics.leaving(one, facts, left)),
                StepDiagnostics.facts(facts.tokens(), reports),
                StepDiagnostics.inForce(reports));
    }

    private List<Trajectory> decoded(LearnerBatch batch, List<ConsumerRecord<byte[], byte[]>> members) {
        List<Trajectory> trajectories = new ArrayList<>(members.size());
        for (int i = 0; i < members.size(); i++) {
            Trajectory trajectory = trajectoryReader.deserialize(
                    members.get(i).topic(), members.get(i).value());
            BatchEntry entry = batch.getEntries().get(i);
            if (trajectory == null || !trajectory.getRolloutId().equals(entry.getRolloutId())) {
                throw BatchTrajectories.missing(members.get(i).topic(), batch, entry, "another lies there");
            }
            trajectories.add(trajectory);
        }
        return trajectories;
    }

    /** Some alternative cannot decide the batch, so none are compared. */
    private static final class UndecidedException extends RuntimeException {
        private static final long serialVersionUID = 1;

        UndecidedException(String where, StageFailedException why) {
            super(where + ": " + why.getMessage(), why);
        }
    }

    private void hand(Future<Decided> decided, Consumer<ReplayedStep> steps) throws InterruptedException {
        try {
            steps.accept(diagnosed(decided.get()));
        } catch (ExecutionException e) {
            if (e.getCause() instanceof UndecidedException without) {
                undecided++;
                firstUndecided = firstUndecided == null ? without.getMessage() : firstUndecided;
                return;
            }
            throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e.getCause());
        }
    }

    private ReplayedStep diagnosed(Decided step) {
        if (keeper != null) {
            keeper.keep(step.kept());
        }
        List<Optional<Diagnosis>> diagnoses = new ArrayList<>();
        for (int a = 0; a < courses.size(); a++) {
            Seen seen = step.seen().get(a);
            courses.get(a).add(seen.policies(), seen.facts());
            diagnoses.add(
                    seen.policies().isEmpty()
                            ? Optional.empty()
                            : courses.get(a).diagnose(seen.inForce()));
        }
        return step.step()
                .diagnosed(diagnoses, step.seen().stream().map(Seen::facts).toList());
    }

    /** The learner's log by batch, in order. Holds one record per partition; confined to one thread. */
    static final class TrainedSteps implements AutoCloseable {
        private final RecordedRun run;
        private final AvroRecordDeserializer<TrainingStep> deserializer;
        private final List<Head> heads = new ArrayList<>();

        private static final class Head {
            private final RecordCursor cursor;
            private Optional<TrainingStep> step = Optional.empty();

            Head(RecordCursor cursor) {
                this.cursor = cursor;
            }
        }

        TrainedSteps(RecordedRun run) {
            this.run = run;
            this.deserializer = AvroSerde.of(TrainingStep.class, run.registry()).deserializer();
            for (TopicPartition partition : run.partitions(run.topics().trainingLog())) {
                heads.add(new Head(run.read(partition, 0)));
            }
        }

        /** Call in batch order; empty if there is none. */
        Optional<TrainingStep> of(long batchId) {
            for (Head head : heads) {
                while (head.step.isEmpty() || head.step.get().getBatchId() < batchId) {
                    Optional<ConsumerRecord<byte[], byte[]>> next = head.cursor.next();
                    if (next.isEmpty()) {
                        break;
                    }
                    head.step = ours(next.get()).or(() -> head.step);
                }
                if (head.step.isPresent() && head.step.get().getBatchId() == batchId) {
                    return head.step;
                }
            }
            return Optional.empty();
        }

        private Optional<TrainingStep> ours(ConsumerRecord<byte[], byte[]> record) {
            return TopicScan.readable(deserializer, record)
                    .filter(step -> run.run().owns(step.getRunId(), step.getEpoch())
                            && run.run().policyId().equals(step.getPolicyId()));
        }

        @Override
        public void close() {
            heads.forEach(head -> head.cursor.close());
        }
    }

    /**
     * Trajectory records of batches, requested in order.
     *
     * <p>Batches use trajectories in nearly log order, so each partition is read once and early records are kept, up
     * to {@value #KEPT_BYTES} bytes. Evicted or distant ones are fetched individually, each a broker request. Confined
     * to one thread.
     */
    static final class TrajectoryFeed implements AutoCloseable {
        private static final long KEPT_BYTES = 64 << 20;
        private static final long OBJECT_BYTES = 200;
        /** Records skipped rather than fetched individually. */
        private static final long READ_OVER = 20_000;

        private record Place(int partition, long offset) {}

        private static final class Reading {
            private final RecordCursor cursor;
            private long next;
            private boolean ended;

            Reading(RecordCursor cursor, long next) {
                this.cursor = cursor;
                this.next = next;
            }
        }

        private final RecordedRun run;
        private final String topic;
        private final RecordFetcher fetcher;
        private final Map<Integer, Reading> readings = new HashMap<>();
        /** Read before their batch, oldest first. */
        private final Map<Place, ConsumerRecord<byte[], byte[]>> kept = new LinkedHashMap<>();

        private long keptBytes;

        TrajectoryFeed(RecordedRun run) {
            this.run = run;
            this.topic = run.topics().trajectories();
            this.fetcher = run.fetcher();
        }

        /**
         * One record per entry.
         *
         * @throws ArchiveException naming the first missing one
         */
        List<ConsumerRecord<byte[], byte[]>> of(LearnerBatch batch) {
            List<BatchEntry> entries = batch.getEntries();
            for (BatchEntry entry : entries) {
                if (!run.partitions(topic).contains(new TopicPartition(topic, entry.getPartition()))) {
                    throw BatchTrajectories.missing(topic, batch, entry, "the topic has no such partition");
                }
            }
            Integer[] inOrder = new Integer[entries.size()];
            Arrays.setAll(inOrder, e -> e);
            Arrays.sort(
                    inOrder,
                    Comparator.comparingInt((Integer e) -> entries.get(e).getPartition())
                            .thenComparingLong(e -> entries.get(e).getOffset()));
            List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>(Collections.nCopies(entries.size(), null));
            Map<Integer, List<Integer>> elsewhere = new TreeMap<>();
            for (Integer e : inOrder) {
                found.set(
                        e,
                        inPassing(entries.get(e).getPartition(), entries.get(e).getOffset()));
                if (found.get(e) == null) {
                    elsewhere
                            .computeIfAbsent(entries.get(e).getPartition(), partition -> new ArrayList<>())
                            .add(e);
                }
            }
            elsewhere.forEach((partition, absent) -> fetch(partition, absent, entries, found));
            for (int e = 0; e < found.size(); e++) {
                if (found.get(e) == null) {
                    throw BatchTrajectories.missing(topic, batch, entries.get(e), "the log no longer has it");
                }
            }
            return found;
        }

        /** Null if it has to be fetched individually. */
        private @Nullable ConsumerRecord<byte[], byte[]> inPassing(int partition, long offset) {
            Reading reading = readings.computeIfAbsent(
                    partition, p -> new Reading(run.read(new TopicPartition(topic, p), offset), offset));
            if (offset < reading.next) {
                ConsumerRecord<byte[], byte[]> early = kept.remove(new Place(partition, offset));
                keptBytes -= early == null ? 0 : bytes(early);
                return early;
            }
            while (offset - reading.next <= READ_OVER && !reading.ended && reading.next <= offset) {
                Optional<ConsumerRecord<byte[], byte[]>> next = reading.cursor.next();
                reading.ended = next.isEmpty();
                if (next.isPresent()) {
                    reading.next = next.get().offset() + 1;
                    if (next.get().offset() == offset) {
                        return next.get();
                    }
                    keep(new Place(partition, next.get().offset()), next.get());
                }
            }
            return null;
        }

        private void fetch(
                int partition,
                List<Integer> absent,
                List<BatchEntry> entries,
                List<ConsumerRecord<byte[], byte[]>> found) {
            Map<Long, ConsumerRecord<byte[], byte[]>> fetched = new HashMap<>();
            long[] places = absent.stream()
                    .mapToLong(e -> entries.get(e).getOffset())
                    .distinct()
                    .toArray();
            fetcher.fetch(new TopicPartition(topic, partition), places)
                    .forEach(record -> fetched.put(record.offset(), record));
            absent.forEach(e -> found.set(e, fetched.get(entries.get(e).getOffset())));
        }

        private void keep(Place place, ConsumerRecord<byte[], byte[]> record) {
            kept.put(place, record);
            keptBytes += bytes(record);
            Iterator<ConsumerRecord<byte[], byte[]>> oldest = kept.values().iterator();
            while (keptBytes > KEPT_BYTES && oldest.hasNext()) {
                keptBytes -= bytes(oldest.next());
                oldest.remove();
            }
        }

        private static long bytes(ConsumerRecord<byte[], byte[]> record) {
            return OBJECT_BYTES + (record.value() == null ? 0 : record.value().length);
        }

        @Override
        public void close() {
            readings.values().forEach(reading -> reading.cursor.close());
            fetcher.close();
        }
    }
}
