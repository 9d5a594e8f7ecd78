package dev.millrace.workloads.closed;

import dev.millrace.workloads.Sample;
import org.jspecify.annotations.Nullable;

/**
 * Seconds of each kind of work of an {@link EnginePlan}.
 *
 * @param prefill all prompts taken in
 * @param decode all sampled tokens drawn
 * @param score all sequences scored behind their prompts
 * @param gradient forward and backward pass over the same
 * @param update one step of AdamW over all parameters
 * @param step gradient and update of the same round
 * @param pack the weights that a step wrote put into the graphs that generate; null where they are fed
 * @param takeUp for how long sampling waits for a version that is made ready beside it; null where nothing is made ready
 * @param decodeAndScore how far the log-probs of the sampled tokens are from what scoring says of them
 * @param deviceAndCpu how far scoring on the device is from scoring on the CPU; null where the device is the CPU
 * @param gradientGap how far a sequence's gradient on the device is from that on the CPU, relative to its norm; likewise
 */
public record EngineRates(
        EnginePlan plan,
        Sample prefill,
        Sample decode,
        Sample score,
        Sample gradient,
        Sample update,
        Sample step,
        @Nullable Sample pack,
        @Nullable Sample takeUp,
        LogProbGap decodeAndScore,
        @Nullable LogProbGap deviceAndCpu,
        @Nullable Double gradientGap) {

    /** Prompt tokens in a second, at the median. */
    public double prefillRate() {
        return plan.sequences() * plan.promptTokens() / prefill.median();
    }

    /** Sampled tokens in a second, at the median. */
    public double decodeRate() {
        return plan.sequences() * plan.sampledTokens() / decode.median();
    }

    /** Tokens of scored sequences, prompts included, in a second, at the median. */
    public double scoreRate() {
        return plan.sequences() * plan.length() / score.median();
    }

    /** Tokens of sequences in a second that go through forward and backward pass, prompts included, at the median. */
    public double gradientRate() {
        return plan.sequences() * plan.length() / gradient.median();
    }
}
