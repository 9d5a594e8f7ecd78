package dev.millrace.workloads.closed;

import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.WeightPlacement;

/**
 * Work of a round.
 *
 * @param promptTokens per sequence, at least 2
 * @param tokenBudget padded tokens of a micro-batch
 * @param rounds after the warm-up
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

    /** True if versions are packed into the generating graphs, not just read. */
    public boolean makesReady(Device device) {
        return placement.packs() || device.kind() != Device.Kind.CPU;
    }

    /** Copies of the weights in addition to the trained ones. */
    public int moreCopies(Device device) {
        int ready = makesReady(device) ? 1 : 0;
        return precision == Precision.F32 ? ready : 1 + 2 * ready;
    }

    public int length() {
        return promptTokens + sampledTokens;
    }
}
