package dev.millrace.workloads.closed;

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
