package dev.millrace.corrections.weights;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * Band-masked importance weights, one per token: {@code w_t = rho_t} if {@code lower <= rho_t <= upper}, else 0.
 *
 * <p>Where truncation keeps a token whose ratio it does not believe, the band drops it: a ratio far from 1 between two
 * engines says that one of them is wrong about the token. The token stays in the mask and in every denominator.
 *
 * <p>Source: IcePop, in Ling Team, "Every Step Evolves" (2025); verl {@code rollout_is=token} with a
 * {@code lower_upper} threshold, defaults 0.5 and 5.
 */
public final class TokenBandWeights implements WeightMethod {
    private final double logLower;
    private final double logUpper;

    /**
     * @param lower smallest ratio that is kept, in (0, 1]
     * @param upper largest ratio that is kept, at least 1 and finite
     */
    public TokenBandWeights(double lower, double upper) {
        Caps.requireBand(lower, upper);
        this.logLower = Math.log(lower);
        this.logUpper = Math.log(upper);
    }

    @Override
    public WeightSummary compute(TokenBatch batch, LogRatio ratio, float[] weights) {
        return WeightTally.perToken(
                batch, ratio, weights, (tally, logRatio, token) -> tally.banded(logRatio, logLower, logUpper, 1));
    }
}
