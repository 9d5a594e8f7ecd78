package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockExp;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import java.util.function.ObjIntConsumer;

/**
 * Truncated importance weights, one per token: {@code w_t = min(rho_t, cap)}.
 *
 * <p>Low variance at any length, at the price of a bias: a token's weight ignores how unlikely the tokens before it
 * have become. Ratios are bounded to {@code e^-20} and {@code e^20}; those below the cap are right to
 * {@value BlockExp#EXP_RELATIVE_ERROR} before they are rounded to float.
 *
 * <p>Source: Yao et al., "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training" (2025), token-level
 * TIS; verl {@code rollout_is=token} with a single threshold.
 */
public final class TokenTruncatedWeights implements WeightMethod {
    private final double cap;
    private final double logCap;

    /** @param cap largest weight; finite and at least 1, so that on-policy tokens keep weight 1 */
    public TokenTruncatedWeights(double cap) {
        this.cap = cap;
        this.logCap = Caps.logOfCap(cap);
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        ratio.requireFits(batch);
        batch.requireLength("weights", weights.length);
        Pass pass = pass(weights);
        TokenBlock block = new TokenBlock();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t += TokenBlock.CAPACITY) {
                block.load(batch, ratio, s, t, Math.min(t + TokenBlock.CAPACITY, batch.end(s)));
                pass.accept(block, s);
            }
        }
        return pass.summary();
    }

    Pass pass(float[] weights) {
        return new Pass(weights);
    }

    /** Weighs the blocks of a batch in their order. */
    final class Pass implements ObjIntConsumer<TokenBlock> {
        private final float[] weights;
        private final WeightTally tally = new WeightTally();
        private int sequence = -1;

        private Pass(float[] weights) {
            this.weights = weights;
        }

        @Override
        public void accept(TokenBlock block, int s) {
            if (s != sequence) {
                tally.nextSequence();
                sequence = s;
            }
            weigh(block, weights, tally);
        }

        WeightSummary summary() {
            return tally.summary();
        }
    }

    private void weigh(TokenBlock block, float[] weights, WeightTally tally) {
        int tokens = block.size();
        if (!(block.max() > logCap)) {
            tally.block(tokens, 0, block.ratioSum(), Math.exp(block.min()), Math.exp(block.max()));
            block.scatter(block.ratio, weights);
            return;
        }
        for (int i = 0; i < tokens; i++) {
            block.scratch[i] = Math.min(block.ratio[i], cap);
        }
        // in log space, where the ratio is exact and its exponential is not
        tally.block(
                tokens,
                BlockSums.countAbove(block.bounded(), tokens, logCap),
                BlockSums.sum(block.scratch, tokens),
                Math.min(Math.exp(block.min()), cap),
                cap);
        block.scatter(block.scratch, weights);
    }
}
