package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;

/**
 * Decoupled PPO: the clipped surrogate around the proximal policy, weighed by how far that one is from the policy that
 * sampled: {@code ℓ = sg[min(exp(proximal − behavior), cap)] · clip surrogate(exp(current − proximal), A)}.
 *
 * <p>Unit of correction: token, for both ratios. The trust region is thus around a recent policy although the data are
 * old. The weight multiplies whatever importance weights the input carries, and is constant in the derivative. Metrics
 * as {@link PpoClip}.
 *
 * <p>Source: Hilton et al. 2022 (arXiv 2110.00641); Fu et al. 2025, AReaL (arXiv 2505.24298). AReaL drops tokens whose
 * weight is above its cap; here the cap truncates, and dropping is a mask's business: reject first, then
 * {@link ObjectiveInput#withMask}.
 */
public final class DecoupledPpo implements Objective {
    private final PpoClip clip;
    private final double logCap;

    /** @param cap largest weight; at least 1, infinite for none */
    public DecoupledPpo(ClipRange range, double dualClip, double cap, LossAggregation aggregation) {
        if (!(cap >= 1.0)) {
            throw new IllegalArgumentException("cap must be at least 1, so that fresh tokens keep weight 1: " + cap);
        }
        this.clip = new PpoClip(range, dualClip, aggregation);
        this.logCap = Math.log(cap);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        float[] proximal = input.requireProximal("decoupled PPO");
        float[] behavior = input.requireBehavior("decoupled PPO");
        TokenBatch batch = input.batch();
        float[] weights = new float[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double logWeight = Math.min(logCap, (double) proximal[t] - behavior[t]);
                    weights[t] = (float) (Math.exp(logWeight) * input.weight(t));
                }
            }
        }
        return clip.evaluate(input.withWeights(weights));
    }
}
