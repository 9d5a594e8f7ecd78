package dev.millrace.runtime.report;

import dev.millrace.learner.step.StepMetric;
import dev.millrace.schemas.TrainingStep;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One step for people: a line of steps.csv and a point of the chart. Values that the learner did not compute are NaN; a
 * starved step has no staleness, ESS or second moment.
 *
 * @param logged of the training log
 */
public record StepRow(TrainingStep logged) {

    /** Counts the batches from 1. */
    public long step() {
        return logged.getBatchId() + 1;
    }

    /** Version made by the step; unchanged by a starved step. */
    public long version() {
        return logged.getVersion();
    }

    /** Mean over the batch's rollouts. */
    public double reward() {
        return logged.getRewardMean();
    }

    /** Version at the start of the step less the version that sampled, mean over the tokens trained on. */
    public double stalenessMean() {
        return orNaN(logged.getStalenessMean());
    }

    public double stalenessMax() {
        return orNaN(logged.getStalenessMax());
    }

    /** The part of the mean until the rollout was scored. */
    public double stalenessInFlight() {
        return orNaN(logged.getStalenessInFlightMean());
    }

    /** The part of the mean from the score until the step started. */
    public double stalenessInQueue() {
        return orNaN(logged.getStalenessInQueueMean());
    }

    /** ESS ratio of the raw sequence weights. */
    public double essRatio() {
        return starved() ? Double.NaN : orNaN(logged.getEssRatio());
    }

    public double essRatioTruncated() {
        return starved() ? Double.NaN : orNaN(logged.getEssRatioTruncated());
    }

    /** Second moment before the second-moment mask. */
    public double secondMoment() {
        return orNaN(logged.getSecondMoment());
    }

    /** Second moment of the tokens trained on. */
    public double secondMomentTrained() {
        return orNaN(logged.getSecondMomentTrained());
    }

    /** The k1 estimate between behavior and current. */
    public double kl() {
        return metric(StepMetric.APPROX_KL_BEHAVIOR);
    }

    /** Tokens before any stage; 0 if the trainer does not report it. */
    public long tokensTrainable() {
        return logged.getTokensTrainable();
    }

    public long tokensTrained() {
        return logged.getTokensTrained();
    }

    public boolean starved() {
        return logged.getStarved();
    }

    public long finishedAtMs() {
        return logged.getFinishedAtMs();
    }

    public Map<String, Double> metrics() {
        return logged.getMetrics();
    }

    /** NaN if the learner does not report it. */
    public double metric(StepMetric metric) {
        return metrics().getOrDefault(metric.key(), Double.NaN);
    }

    /** Share of tokens trained on, of those before any stage; NaN if the trainer does not report it. */
    public double trainedShare() {
        return tokensTrainable() == 0 ? Double.NaN : (double) tokensTrained() / tokensTrainable();
    }

    /** Seconds from the start of the step to its new weights. */
    public double seconds() {
        return (finishedAtMs() - logged.getStartedAtMs()) / 1e3;
    }

    /** Share of waiting in the time of waiting and step together; NaN if the trainer does not report it. */
    public double idleRatio() {
        return idleSeconds() / (idleSeconds() + seconds());
    }

    /** Tokens trained on per second of waiting and step; NaN if the trainer does not report its waiting time. */
    public double tokensPerSecond() {
        double all = idleSeconds() + seconds();
        return all > 0 ? tokensTrained() / all : Double.NaN;
    }

    private double idleSeconds() {
        return metric(StepMetric.SECONDS_IDLE);
    }

    private static double orNaN(@Nullable Number value) {
        return value == null ? Double.NaN : value.doubleValue();
    }
}
