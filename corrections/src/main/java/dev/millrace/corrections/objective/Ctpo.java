package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

import dev.millrace.corrections.CorrectionUnit;

/**
 * CTPO: PPO's clip on the product of the ratios so far, in a band that widens with the position:
 * {@code ℓ_t = max(−A r_t, −A clip(r_t, e^(−low √t), e^(high √t)))}, {@code r_t = Π_(i<=t) exp(current − anchor)}, and
 * {@code ℓ_t = min(ℓ_t, −A e^(dual √t))} where {@code A < 0}; t counts the trained tokens of the sequence from 1.
 *
 * <p>Unit of correction: prefix. In value a token's ratio is the whole prefix's, in derivative it is the token's alone, so a
 * token receives {@code −A r_t} where it is not clipped. A log ratio of a token is bounded to ±20, their sum to 10 above
 * (derivative 0 beyond), as in the source. Metrics: approximate KL (of the tokens' own ratios), clipped and dual-clipped
 * fractions.
 *
 * <p>Source: Zhang et al. 2026 (arXiv 2605.07331) and {@code cum-token-cumprod-la} of its code, commit acc4021.
 *
 * @param anchor policy to compare with
 * @param low decline of the log lower bound, above 0
 * @param high rise of the log upper bound, above 0
 * @param dual rise of the log of the largest ratio at a negative advantage, above 0
 */
public record Ctpo(Anchor anchor, double low, double high, double dual) implements Objective {
    private static final double LOG_RATIO_BOUND = 10.0;

    public Ctpo {
        positive("low", low);
        positive("high", high);
        positive("dual", dual);
    }

    public static Ctpo defaults() {
        return new Ctpo(Anchor.PROXIMAL, 0.025, 0.05, 0.05);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.PREFIX;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(new PrefixRule(), input.requireProximal("CTPO"))
                .withClipMetrics();
    }

    /** Fed a sequence's trained tokens in order. */
    private final class PrefixRule implements TokenRule {
        private int sequence = -1;
        private int position;
        private double logProduct;

        @Override
        public void apply(double current, double anchored, double advantage, TokenTerm term) {
            if (term.sequence != sequence) {
                sequence = term.sequence;
                position = 0;
                logProduct = 0;
            }
            term.logRatio = BoundedLogRatio.of(current, anchored);
            logProduct += term.logRatio;
            double width = Math.sqrt(++position);
            double inBand = Math.max(-low * width, Math.min(high * width, logProduct));
            double free = -advantage * Math.exp(Math.min(logProduct, LOG_RATIO_BOUND));
            double clipped = -advantage * Math.exp(inBand);
            double bound = -advantage * Math.exp(dual * width);
            term.clipped = clipped > free;
            term.loss = Math.max(free, clipped);
            term.derivative = term.clipped || logProduct > LOG_RATIO_BOUND ? 0.0 : free;
            if (advantage < 0 && term.loss > bound) {
                term.loss = bound;
                term.derivative = 0.0;
                term.lowerClipped = true;
            }
        }
    }
}
