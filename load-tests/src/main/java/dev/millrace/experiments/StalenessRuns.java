package dev.millrace.experiments;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.learner.step.NonFiniteStepException;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.NonFiniteScoreException;
import dev.millrace.policy.weights.WeightRing;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.run.RunIdentity;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Runs of one experiment: at step t the batch is sampled by version {@code max(0, t - lag)}, version 0 being the policy
 * that the warm start of the run's seed ends with.
 *
 * <p>A run is a function of its key and the settings, bit for bit on the same kind of machine: nothing in it looks at a
 * clock, shares state with another run, or is added up by more than one thread. Thread-safe.
 */
public final class StalenessRuns {
    private static final RunIdentity RUN = new RunIdentity("experiment", 0, "policy");

    private final StalenessSettings settings;
    private final Map<Long, TrainedPolicy> warmStarts = new ConcurrentHashMap<>();

    public StalenessRuns(StalenessSettings settings) {
        this.settings = settings;
    }

    GridRunResult run(RunKey key) {
        TrainedPolicy start = warmStarts.computeIfAbsent(key.seed(), this::warmStart);
        IncSeries series = new IncSeries(RUN, settings, key.seed());
        List<StepPoint> points = new ArrayList<>();
        List<Evaluation> evaluations = new ArrayList<>();
        String refused = null;
        try (LaggedStep step = new LaggedStep(RUN, series, settings, key.correction())) {
            AdamW optimizer = step.newOptimizer();
            optimizer.restore(start.optimizer());
            Weights current = start.weights().copy();
            WeightRing versions = new WeightRing(key.lag(), 0);
            versions.add(current);
            evaluations.add(step.evaluate(current, 0));
            for (int t = 0; t < settings.steps(); t++) {
                long behavior = Math.max(0, t - key.lag());
                points.add(step.take(start.batches() + t, t, versions.at(behavior), behavior, current, optimizer));
                versions.add(current);
                if ((t + 1) % settings.evaluateEvery() == 0) {
                    evaluations.add(step.evaluate(current, t + 1L));
                }
            }
        } catch (NonFiniteStepException | NonFiniteScoreException | NonFiniteLogProbException e) {
            refused = e.getMessage();
        }
        return new GridRunResult(key, settings, points, evaluations, refused);
    }

    private TrainedPolicy warmStart(long seed) {
        IncSeries series = new IncSeries(RUN, settings, seed);
        Weights current = Weights.random(settings.model(), seed);
        try (LaggedStep step = new LaggedStep(RUN, series, settings, Correction.NONE)) {
            AdamW optimizer = step.newOptimizer();
            for (int t = 0; t < settings.warmUpSteps(); t++) {
                step.take(t, t, current, t, current, optimizer);
            }
            return TrainedPolicy.copyOf(current, optimizer, settings.warmUpSteps());
        }
    }
}
