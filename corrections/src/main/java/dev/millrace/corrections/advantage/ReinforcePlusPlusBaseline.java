package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * REINFORCE++ with a group baseline: {@code r − mean} of its group, then whitened over all trained tokens of the batch.
 *
 * <p>Unit: sequence, against its group, on the scale of the batch: unlike GRPO's division by the group's deviation, a
 * group that hardly differs stays quiet. A group of one keeps its reward. Whitening subtracts a token-weighted mean, so
 * advantages depend on lengths. At least 2 trained tokens are needed.
 *
 * <p>Source: Hu et al. 2025 (arXiv 2501.03262).
 */
public record ReinforcePlusPlusBaseline() implements OutcomeAdvantage {

    /** It has no settings. */
    public static ReinforcePlusPlusBaseline defaults() {
        return new ReinforcePlusPlusBaseline();
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        double[] centred = new Grpo(false).perSequence(batch, rewards);
        return Whitening.ofSequences(batch, centred).apply(centred);
    }
}
