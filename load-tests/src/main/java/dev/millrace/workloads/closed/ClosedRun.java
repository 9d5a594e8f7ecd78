package dev.millrace.workloads.closed;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import dev.millrace.workloads.SettingsLabel;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/**
 * Results of one run. -1 means not reached.
 *
 * @param synchronous {@code admission.eta} is 0
 * @param seconds from the end of the first step to that of the last counted one
 * @param speed relative to the synchronous run
 * @param steps after the first
 */
public record ClosedRun(
        Map<String, String> settings,
        boolean synchronous,
        double seconds,
        @JsonUnwrapped Use use,
        @JsonUnwrapped Speed speed,
        int overSteps,
        List<ClosedStep> steps) {

    /**
     * Who waited.
     *
     * @param idle share of time, by role; waiting for environments and simulated steps: generator idle, learner not
     * @param processorLoad of the whole machine, 0 to 1
     */
    public record Use(Map<String, Double> idle, double processorLoad) {}

    /**
     * Speed of learning.
     *
     * @param secondsToReward until the plan's mean reward
     * @param speedUp trained tokens per second over the synchronous run's
     * @param speedUpToReward the synchronous run's seconds to the reward over this one's
     */
    public record Speed(double secondsToReward, double speedUp, double speedUpToReward) {}

    /** @param steps after the first, at least one */
    public static ClosedRun of(
            Map<String, String> settings, boolean synchronous, ClosedPlan plan, List<ClosedStep> steps, Use use) {
        if (steps.isEmpty()) {
            throw new IllegalArgumentException("a run needs at least one step after its first");
        }
        return new ClosedRun(
                settings,
                synchronous,
                steps.get(steps.size() - 1).atSeconds(),
                use,
                new Speed(secondsTo(plan.reward(), plan.overSteps(), steps), 1, 1),
                plan.overSteps(),
                List.copyOf(steps));
    }

    private static double secondsTo(double reward, int overSteps, List<ClosedStep> steps) {
        double sum = 0;
        for (int i = 0; i < steps.size(); i++) {
            sum += steps.get(i).reward()
                    - (i >= overSteps ? steps.get(i - overSteps).reward() : 0);
            if (i >= overSteps - 1 && sum / overSteps >= reward) {
                return steps.get(i).atSeconds();
            }
        }
        return -1;
    }

    public ClosedRun beside(ClosedRun baseline) {
        double toReward = speed.secondsToReward();
        double baselineToReward = baseline.speed.secondsToReward();
        return new ClosedRun(
                settings,
                synchronous,
                seconds,
                use,
                new Speed(
                        toReward,
                        tokensPerSecond() / baseline.tokensPerSecond(),
                        toReward <= 0 || baselineToReward <= 0 ? -1 : baselineToReward / toReward),
                overSteps,
                steps);
    }

    public long tokens() {
        return steps.stream().mapToLong(ClosedStep::tokens).sum();
    }

    public double tokensPerSecond() {
        return tokens() / seconds;
    }

    public double millisPerStep() {
        int from = steps.size() / 2;
        double begin = from == 0 ? 0 : steps.get(from - 1).atSeconds();
        return 1e3 * (steps.get(steps.size() - 1).atSeconds() - begin) / (steps.size() - from);
    }

    public double firstReward() {
        return mean(steps.subList(0, Math.min(overSteps, steps.size())), ClosedStep::reward);
    }

    public double lastReward() {
        return mean(steps.subList(Math.max(0, steps.size() - overSteps), steps.size()), ClosedStep::reward);
    }

    /** Mean over steps that trained a token; NaN without one. */
    public double staleness() {
        return steps.stream()
                .mapToDouble(ClosedStep::staleness)
                .filter(Double::isFinite)
                .average()
                .orElse(Double.NaN);
    }

    public double essRatio() {
        double[] sorted = steps.stream()
                .mapToDouble(ClosedStep::essRatio)
                .filter(Double::isFinite)
                .sorted()
                .toArray();
        return sorted.length == 0 ? Double.NaN : sorted[sorted.length / 2];
    }

    private static double mean(List<ClosedStep> steps, ToDoubleFunction<ClosedStep> value) {
        return steps.stream().mapToDouble(value).average().orElseThrow();
    }

    public String label() {
        return SettingsLabel.of(settings);
    }

    /**
     * An optimizer step.
     *
     * @param atSeconds since the end of the run's first step
     * @param reward mean of the batch
     * @param staleness mean versions behind over trained tokens; NaN without one
     * @param essRatio NaN without a token
     */
    public record ClosedStep(
            double atSeconds, long version, double reward, double staleness, double essRatio, long tokens) {}
}
