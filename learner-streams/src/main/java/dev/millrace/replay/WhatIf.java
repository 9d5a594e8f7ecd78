package dev.millrace.replay;

import dev.millrace.archive.RecordCursor;
import dev.millrace.archive.RecordedRun;
import dev.millrace.archive.RecordedRun.Range;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.DecisionTree;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.DiagnosticBounds;
import dev.millrace.corrections.diagnostics.DiagnosticsStep;
import dev.millrace.corrections.diagnostics.DiagnosticsWindow;
import dev.millrace.corrections.diagnostics.OffPolicyDiagnostics;
import dev.millrace.corrections.diagnostics.OffPolicyReport;
import dev.millrace.corrections.diagnostics.PolicyGap;
import dev.millrace.corrections.diagnostics.TreeBounds;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.stages.BatchInput;
import dev.millrace.stages.BatchVerdict;
import dev.millrace.stages.ComparedPolicies;
import dev.millrace.stages.MissingOldLogProbs;
import dev.millrace.topology.batch.AssembledInput;
import dev.millrace.topology.fetch.RecordFetcher;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * What other corrections would have made of a run's batches: the same rollouts, the same batches, decided by others.
 *
 * <p>Batches are read in order, their trajectories by the places that they name. Steps are decided at once on several
 * threads and handed on in their order, so the result does not depend on the number of threads, and no more steps than
 * twice the threads are in memory. The first alternative is the run's own corrections: that they give the recorded batch
 * again is asked of every step.
 */
public final class WhatIf {
    /** Steps that a diagnosis looks back on. */
    private static final int WINDOW = 10;
    private static final OffPolicyDiagnostics DIAGNOSTICS = new OffPolicyDiagnostics(DiagnosticBounds.DEFAULT);

    private final RecordedRun run;
    private final StepRange range;
    private final List<AlternativeReplay> alternatives;
    private final DecisionTree tree = new DecisionTree(TreeBounds.DEFAULT);
    private final Deque<DiagnosticsStep> window = new ArrayDeque<>();
    private final LongAdder passed = new LongAdder();
    private final LongAdder tokens = new LongAdder();

    /** @param alternatives the run's own corrections first */
    public WhatIf(RecordedRun run, StepRange range, List<Alternative> alternatives) {
        this.run = run;
        this.range = range;
        this.alternatives = alternatives.stream().map(AlternativeReplay::new).toList();
    }

    /** Offsets of batches that were passed so far; from any thread. */
    public long passed() {
        return passed.sum();
    }

    /** Offsets of batches to pass. */
    public long toPass() {
        return run.partitions(run.topics().batches()).stream().map(this::offsets).mapToLong(r -> r.end() - r.from()).sum();
    }

    /** Response tokens decided about so far, each once, whatever the number of alternatives. */
    public long tokens() {
        return tokens.sum();
    }

    private Range offsets(TopicPartition partition) {
        Range all = run.range(partition);
        long from = Math.max(all.from(), range.fromOffset());
        long end = range.toOffset() == Long.MAX_VALUE ? all.end() : Math.min(all.end(), range.toOffset() + 1);
        return new Range(from, Math.max(from, end));
    }

    /** One batch decided, before it is put behind those before it. */
    private record Decided(ReplayedStep step, Optional<DiagnosticsStep> diagnostics) {
    }

    /**
     * Replays every batch of the range.
     *
     * @param threads at least 1
     * @param steps takes each in order, on the calling thread
     */
    public void replay(int threads, Consumer<ReplayedStep> steps) throws InterruptedException {
        BlockingQueue<RecordFetcher> fetchers = new ArrayBlockingQueue<>(threads);
        for (int i = 0; i < threads; i++) {
            fetchers.add(run.fetcher());
        }
        ExecutorService workers = Executors.newFixedThreadPool(threads, runnable -> new Thread(runnable, "replay"));
        try {
            Deque<Future<Decided>> underWay = new ArrayDeque<>();
            for (TopicPartition partition : run.partitions(run.topics().batches())) {
                Range offsets = offsets(partition);
                try (RecordCursor cursor = run.read(partition, offsets.from())) {
                    long position = offsets.from();
                    for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                            next.isPresent() && next.get().offset() < offsets.end(); next = cursor.next()) {
                        passed.add(next.get().offset() + 1 - position);
                        position = next.get().offset() + 1;
                        Optional<LearnerBatch> batch = batch(next.get());
                        if (batch.isPresent()) {
                            underWay.add(workers.submit(() -> decide(batch.get(), fetchers)));
                        }
                        while (underWay.size() > 2 * threads) {
                            steps.accept(diagnosed(underWay.remove()));
                        }
                    }
                    passed.add(offsets.end() - position);
                }
            }
            while (!underWay.isEmpty()) {
                steps.accept(diagnosed(underWay.remove()));
            }
        } finally {
            workers.shutdownNow();
            fetchers.forEach(RecordFetcher::close);
        }
    }

    /** The batch, if the record is one of this run and of the range; others' records are not ours to judge. */
    private Optional<LearnerBatch> batch(ConsumerRecord<byte[], byte[]> record) {
        try {
            LearnerBatch batch =
                AvroSerde.of(LearnerBatch.class, run.registry()).deserializer().deserialize(record.topic(), record.value());
            return batch != null && run.run().owns(batch.getRunId(), batch.getEpoch()) && range.contains(batch)
                ? Optional.of(batch) : Optional.empty();
        } catch (MalformedRecordException notABatch) {
            return Optional.empty();
        }
    }

    private Decided decide(LearnerBatch batch, BlockingQueue<RecordFetcher> fetchers) throws InterruptedException {
        RecordFetcher fetcher = fetchers.take();
        List<Trajectory> trajectories;
        try {
            trajectories = BatchTrajectories.of(run, batch, fetcher);
        } finally {
            fetchers.add(fetcher);
        }
        BatchInput input = AssembledInput.of(batch, trajectories);
        tokens.add(input.tokens().tokenCount());
        List<StepFigures> figures = new ArrayList<>();
        boolean isAsRecorded = false;
        double staleness = 0;
        for (int a = 0; a < alternatives.size(); a++) {
            BatchVerdict verdict = alternatives.get(a).decide(input);
            figures.add(alternatives.get(a).figures(input, verdict, batch));
            if (a == 0) {
                isAsRecorded = AlternativeReplay.isRecorded(verdict, batch);
                staleness = verdict.stalenessMean();
            }
        }
        double reward = batch.getEntries().stream().mapToDouble(BatchEntry::getReward).average().orElse(0);
        return new Decided(new ReplayedStep(batch.getBatchId(), batch.getAssembledVersion(), batch.getAssembledAtMs(), reward,
            staleness, isAsRecorded, figures, List.of()), diagnostics(input));
    }

    private static Optional<DiagnosticsStep> diagnostics(BatchInput input) {
        if (input.tokens().trainedTokens() == 0) {
            return Optional.empty();
        }
        OffPolicyReport gap = DIAGNOSTICS.compute(input.versions(), input.currentVersion(),
            input.logProbs().ratio(ComparedPolicies.ANCHOR), input.tokens().mask());
        TokenBatch scored = MissingOldLogProbs.without(input.tokens(), input.withoutOld());
        Optional<PolicyGap> engines = scored.trainedTokens() == 0 ? Optional.empty()
            : Optional.of(DIAGNOSTICS.compute(scored, input.logProbs().ratio(ComparedPolicies.ENGINE_MISMATCH)).all());
        return Optional.of(new DiagnosticsStep(gap, engines, Optional.empty()));
    }

    private ReplayedStep diagnosed(Future<Decided> decided) throws InterruptedException {
        Decided step;
        try {
            step = decided.get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e.getCause());
        }
        step.diagnostics().ifPresent(diagnostics -> {
            window.addLast(diagnostics);
            if (window.size() > WINDOW) {
                window.removeFirst();
            }
        });
        List<Optional<Diagnosis>> diagnoses = new ArrayList<>();
        for (AlternativeReplay alternative : alternatives) {
            diagnoses.add(step.diagnostics().isEmpty() ? Optional.empty()
                : Optional.of(tree.diagnose(new DiagnosticsWindow(List.copyOf(window), alternative.inForce()))));
        }
        ReplayedStep of = step.step();
        return new ReplayedStep(of.batchId(), of.version(), of.assembledAtMs(), of.reward(), of.stalenessMean(), of.isAsRecorded(),
            of.figures(), diagnoses);
    }
}
