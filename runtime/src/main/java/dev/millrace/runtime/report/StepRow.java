package dev.millrace.runtime.report;

import dev.millrace.learner.step.StepMetric;
import dev.millrace.schemas.TrainingStep;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One step for people: a line of steps.csv and a point of the chart. Values that the learner did not compute are NaN; a
 * starved step has no staleness, ESS or second moment.
 *
 * @param step counts the batches from 1
 * @param version made by the step; unchanged by a starved step
 * @param reward mean of the batch's rollouts
 * @param stalenessMean version at the start of the step less the version that sampled, mean over the tokens trained on
 * @param stalenessMax the largest
 * @param stalenessInFlight the part of the mean until the rollout was scored
 * @param stalenessInQueue the part from then until the step started
 * @param essRatio of the raw sequence weights
 * @param essRatioTruncated of the truncated ones
 * @param secondMoment before the second-moment mask
 * @param secondMomentTrained of the tokens trained on
 * @param kl k1 between behavior and current
 * @param tokensTrainable tokens before any stage; 0 if the trainer does not report it
 * @param metrics other metrics of the training log, by name
 */
public record StepRow(
        long step,
        long version,
        double reward,
        double stalenessMean,
        double stalenessMax,
        double stalenessInFlight,
        double stalenessInQueue,
        double essRatio,
        double essRatioTruncated,
        double secondMoment,
        double secondMomentTrained,
        double kl,
        double learningRate,
        double loss,
        double gradientNorm,
        double entropy,
        int rolloutsTrained,
        int rolloutsMasked,
        long rolloutsConsumed,
        long tokensTrainable,
        long tokensTrained,
        boolean starved,
        long startedAtMs,
        long finishedAtMs,
        String weightsSha256,
        Map<String, Double> metrics) {

    public StepRow {
        metrics = Map.copyOf(metrics);
    }

    /** The row of a record of the training log. */
    public static StepRow of(TrainingStep step) {
        return new StepRow(
                step.getBatchId() + 1,
                step.getVersion(),
                step.getRewardMean(),
                orNaN(step.getStalenessMean()),
                orNaN(step.getStalenessMax()),
                orNaN(step.getStalenessInFlightMean()),
                orNaN(step.getStalenessInQueueMean()),
                step.getStarved() ? Double.NaN : orNaN(step.getEssRatio()),
                step.getStarved() ? Double.NaN : orNaN(step.getEssRatioTruncated()),
                orNaN(step.getSecondMoment()),
                orNaN(step.getSecondMomentTrained()),
                metric(step, StepMetric.APPROX_KL_BEHAVIOR),
                step.getLearningRate(),
                metric(step, StepMetric.LOSS),
                metric(step, StepMetric.GRAD_NORM),
                metric(step, StepMetric.ENTROPY),
                step.getRolloutsTrained(),
                step.getRolloutsMasked(),
                step.getRolloutsConsumed(),
                step.getTokensTrainable(),
                step.getTokensTrained(),
                step.getStarved(),
                step.getStartedAtMs(),
                step.getFinishedAtMs(),
                step.getWeightsSha256(),
                step.getMetrics());
    }

    /** Share of tokens trained on, of those before any stage; NaN if the trainer does not report it. */
    public double trainedShare() {
        return tokensTrainable == 0 ? Double.NaN : (double) tokensTrained / tokensTrainable;
    }

    /** Seconds from the start of the step to its new weights. */
    public double seconds() {
        return (finishedAtMs - startedAtMs) / 1e3;
    }

    /** Share of waiting in the time of waiting and step together; NaN if the trainer does not report it. */
    public double idleRatio() {
        return idleSeconds() / (idleSeconds() + seconds());
    }

    /** Tokens trained on per second of waiting and step; NaN if the trainer does not report its waiting time. */
    public double tokensPerSecond() {
        double all = idleSeconds() + seconds();
        return all > 0 ? tokensTrained / all : Double.NaN;
    }

    private double idleSeconds() {
        return metrics.getOrDefault(StepMetric.SECONDS_IDLE.key(), Double.NaN);
    }

    private static double orNaN(@Nullable Number value) {
        return value == null ? Double.NaN : value.doubleValue();
    }

    private static double metric(TrainingStep step, StepMetric metric) {
        return step.getMetrics().getOrDefault(metric.key(), Double.NaN);
    }
}
