package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.atLeastZero;

/**
 * IPO: the surrogate of the ratio current / behavior on the tokens whose probability has not moved by more than
 * {@code ε}, {@code ℓ = sg[|π − μ| ≤ ε] · (−A r + β (log r)²)}; the others are dropped, regardless of their direction
 * and of the sign of the advantage.
 *
 * <p>Unit of correction: token. The derivative on a kept token is {@code −A r + 2 β log r}; 0 where the log ratio is
 * beyond ±20. The bound is on probabilities, not on their ratio, so a token of probability 0.001 may become ten times
 * likelier and one of 0.9 may not fall to 0.5. {@link DppoTv} is the one-sided variant: it drops only tokens that moved
 * in the direction of their advantage. Metrics: approximate KL, fraction dropped.
 *
 * <p>Source: the descriptions of prime-rl pull requests 3418 and 3586; no paper. Not the preference optimisation of the
 * same name.
 *
 * @param epsilon largest change of a kept token's probability, above 0, at most 1
 * @param beta weight of a kept token's squared log ratio
 */
public record Ipo(double epsilon, double beta) implements BehaviorObjective {
    public Ipo {
        Bounds.inUnit("epsilon", epsilon);
        atLeastZero("beta", beta);
    }

    /** The source's: 0.3, and no penalty. */
    public static Ipo defaults() {
        return new Ipo(0.3, 0);
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(this::token, input.requireBehavior("IPO"))
                .withClippedFraction();
    }

    private void token(double current, double behavior, double advantage, TokenTerm term) {
        term.logRatio = BoundedLogRatio.of(current, behavior);
        term.clipped = Math.abs(Math.exp(current) - Math.exp(behavior)) > epsilon;
        if (!term.clipped) {
            double surrogate = -advantage * Math.exp(term.logRatio);
            term.loss = surrogate + beta * term.logRatio * term.logRatio;
            term.derivative = (surrogate + 2 * beta * term.logRatio) * BoundedLogRatio.slope(current, behavior);
        }
    }
}
