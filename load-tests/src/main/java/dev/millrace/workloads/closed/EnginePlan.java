package dev.millrace.workloads.closed;

import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.WeightPlacement;

/**
 * How much work each round is.
 *
 * @param sequences side by side
 * @param promptTokens of each sequence, at least 2
 * @param sampledTokens of each sequence, behind its prompt
 * @param tokensPerCall sampled tokens before the caller sees any
 * @param tokenBudget padded tokens of a micro-batch of scoring and gradient
 * @param placement of the weights that prompts and sampled tokens go through
 * @param precision of what prompts and sampled tokens go through
 * @param rounds beside the one that warms up
 */
public record EnginePlan(
        int sequences,
        int promptTokens,
        int sampledTokens,
        int tokensPerCall,
        int tokenBudget,
        WeightPlacement placement,
        Precision precision,
        int rounds) {
    public EnginePlan {
        atLeast(1, sequences, "sequences");
        atLeast(2, promptTokens, "promptTokens");
        atLeast(1, sampledTokens, "sampledTokens");
        atLeast(1, tokensPerCall, "tokensPerCall");
        atLeast(1, tokenBudget, "tokenBudget");
        atLeast(1, rounds, "rounds");
    }

    private static void atLeast(int least, int value, String name) {
        if (value < least) {
            throw new IllegalArgumentException(name + " must be at least " + least + ": " + name + "=" + value);
        }
    }

    /** Whether a version is made ready for the graphs that generate, and not just read. */
    public boolean makesReady(Device device) {
        return placement.packs() || device.kind() != Device.Kind.CPU;
    }

    /** Copies of the weights beside those that are trained. */
    public int moreCopies(Device device) {
        int ready = makesReady(device) ? 1 : 0;
        return precision == Precision.F32 ? ready : 1 + 2 * ready;
    }

    /** Tokens of a whole sequence. */
    public int length() {
        return promptTokens + sampledTokens;
    }
}
