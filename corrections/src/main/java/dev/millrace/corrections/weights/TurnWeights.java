package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.OptionalDouble;

/**
 * Importance weights, one per turn: {@code w_k = min((prod_(t in k) rho_t)^(1/n_k), cap)}, the geometric mean of the
 * ratios of the n_k tokens of the turn.
 *
 * <p>In a multi-turn rollout the policy decides turn by turn, and the environment answers between. A weight per turn
 * neither lets one token speak for a decision nor mixes decisions that the environment has separated.
 *
 * <p>A turn is a run of trained tokens with no context between them, which is what the mask of a multi-turn rollout
 * says; a sequence without context inside is one turn. Context that interrupts an answer for another reason would
 * split it.
 *
 * <p>Source: Li et al., "ST-PPO: Stabilized Off-Policy Proximal Policy Optimization for Multi-Turn Agents" (arXiv
 * 2511.20718), turn-level importance sampling, which is length-normalised. {@link TurnProductWeights} is not.
 *
 * @param threshold largest weight, finite, at least 1
 * @param batchNormalize divide weights by their batch mean
 */
public record TurnWeights(double threshold, boolean batchNormalize) implements CappedWeights {
    public TurnWeights {
        Caps.requireThreshold(threshold);
    }

    public static TurnWeights defaults() {
        return new TurnWeights(2, false);
    }

    @Override
    public String name() {
        return "turn_geometric";
    }

    @Override
    public OptionalDouble cap() {
        return OptionalDouble.of(threshold);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TURN;
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        return Turns.weigh(
                batch, ratio, weights, Caps.logOfCap(threshold), (logProduct, tokens) -> logProduct / tokens);
    }
}
