package dev.millrace.workloads.closed;

import dev.millrace.workloads.SettingsLabel;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/**
 * What one run came to.
 *
 * @param settings what the sweep set for it, by key
 * @param synchronous whether no batch is sampled before the one before is trained on: {@code admission.eta} is 0
 * @param seconds from the end of the first step to that of the last one counted
 * @param idle share of these in which a role had nothing to do, by role; a generator of which every sequence waits for its
 *     environment is idle, a learner in a simulated step is not
 * @param processorLoad of the whole machine, 0 to 1
 * @param secondsToReward until the mean reward that the plan names was reached; -1 if it was not
 * @param speedUp tokens trained on per second, over those of the synchronous run beside it
 * @param speedUpToReward seconds to the reward of the synchronous run over those of this one; -1 where one did not reach it
 * @param steps after the first, in order
 */
public record ClosedRun(
        Map<String, String> settings,
        boolean synchronous,
        double seconds,
        Map<String, Double> idle,
        double processorLoad,
        double secondsToReward,
        double speedUp,
        double speedUpToReward,
        int overSteps,
        List<ClosedStep> steps) {

    /**
     * Of a run by itself; against which other it is fast is for {@link #beside} to say.
     *
     * @param steps after the first, at least one
     */
    public static ClosedRun of(
            Map<String, String> settings,
            boolean synchronous,
            ClosedPlan plan,
            List<ClosedStep> steps,
            Map<String, Double> idle,
            double processorLoad) {
        if (steps.isEmpty()) {
            throw new IllegalArgumentException("a run needs at least one step after its first");
        }
        return new ClosedRun(
                settings,
                synchronous,
                steps.get(steps.size() - 1).atSeconds(),
                idle,
                processorLoad,
                secondsTo(plan.reward(), plan.overSteps(), steps),
                1,
                1,
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

    /** The same, with what it gains over a synchronous run. */
    public ClosedRun beside(ClosedRun baseline) {
        return new ClosedRun(
                settings,
                synchronous,
                seconds,
                idle,
                processorLoad,
                secondsToReward,
                tokensPerSecond() / baseline.tokensPerSecond(),
                secondsToReward <= 0 || baseline.secondsToReward <= 0 ? -1 : baseline.secondsToReward / secondsToReward,
                overSteps,
                steps);
    }

    /** Tokens that were trained on. */
    public long tokens() {
        return steps.stream().mapToLong(ClosedStep::tokens).sum();
    }

    public double tokensPerSecond() {
        return tokens() / seconds;
    }

    /** Mean over the second half of the steps. */
    public double millisPerStep() {
        int from = steps.size() / 2;
        double begin = from == 0 ? 0 : steps.get(from - 1).atSeconds();
        return 1e3 * (steps.get(steps.size() - 1).atSeconds() - begin) / (steps.size() - from);
    }

    /** Mean over the first steps. */
    public double firstReward() {
        return mean(steps.subList(0, Math.min(overSteps, steps.size())), ClosedStep::reward);
    }

    /** Mean over the last steps. */
    public double lastReward() {
        return mean(steps.subList(Math.max(0, steps.size() - overSteps), steps.size()), ClosedStep::reward);
    }

    /** Mean over the steps that were not starved; NaN without one. */
    public double staleness() {
        return steps.stream()
                .mapToDouble(ClosedStep::staleness)
                .filter(Double::isFinite)
                .average()
                .orElse(Double.NaN);
    }

    /** Median over the steps that were not starved; NaN without one. */
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

    /** How it is called in tables and pictures. */
    public String label() {
        return SettingsLabel.of(settings);
    }

    /**
     * An optimiser step of a run.
     *
     * @param atSeconds when it ended, since the end of the run's first step
     * @param version that it made
     * @param reward mean over its batch, which is that of the policy that sampled it
     * @param staleness versions behind at the step, mean over the tokens trained on; NaN without one
     * @param essRatio of its batch; NaN without a token
     * @param tokens that it trained on
     */
    public record ClosedStep(
            double atSeconds, long version, double reward, double staleness, double essRatio, long tokens) {}
}
