package dev.millrace.corrections.kl;

import static dev.millrace.corrections.kl.KlDivergence.FORWARD;
import static dev.millrace.corrections.kl.KlDivergence.REVERSE;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.kl.KlTerms.Term;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.ratio.LogRatio;
import org.jspecify.annotations.Nullable;

/**
 * Estimates one divergence for one purpose with a valid estimator.
 *
 * <p>Given the divergence, the sampling policy and the use, {@link #of} returns the valid estimator of least variance.
 * {@link #insisting} takes the caller's estimator and weighting, and refuses those that would optimise or report
 * something else, naming it. See the package's table.
 *
 * <p>Immutable and thread-safe.
 */
public final class KlPlan {
    private final KlDivergence divergence;
    private final KlSampling sampling;
    private final KlUse use;
    private final Term term;

    private KlPlan(KlDivergence divergence, KlSampling sampling, KlUse use, Term term) {
        this.divergence = divergence;
        this.sampling = sampling;
        this.use = use;
        this.term = term;
    }

    /**
     * The right estimator of least variance.
     *
     * @throws KlMisuseException where there is none: a reward penalty needs tokens the policy, or one it can be weighed
     *     against, sampled
     */
    public static KlPlan of(KlDivergence divergence, KlSampling sampling, KlUse use) {
        return new KlPlan(divergence, sampling, use, KlTerms.best(divergence, sampling, use));
    }

    /**
     * The caller's estimator, if it is right.
     *
     * @throws KlMisuseException saying what it would do instead, and what to use
     */
    public static KlPlan insisting(
            KlDivergence divergence, KlSampling sampling, KlUse use, KlEstimator estimator, KlWeighting weighting) {
        KlRules.require(divergence, sampling, use, estimator, weighting);
        return new KlPlan(divergence, sampling, use, KlTerms.of(estimator, weighting));
    }

    public KlSampling sampling() {
        return sampling;
    }

    public KlUse use() {
        return use;
    }

    /** The formula in the package's letters, such as {@code w (k3), gradient w d}. */
    public String formula() {
        return term.formula();
    }

    /**
     * Evaluates the plan on a batch. Log ratios are bounded to ±20 where they are exponentiated. O(tokens).
     *
     * @param aggregation how token values become one number, as in the objective the term is added to
     * @param behavior log-probs of the policy that sampled; not used by a plan without weights
     * @param whole the global batch that contains this batch
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming the first offending sequence and token
     */
    public KlResult evaluate(
            LossAggregation aggregation,
            TokenBatch batch,
            float[] current,
            float[] reference,
            float[] behavior,
            GlobalBatch whole) {
        batch.requireFinite("current log-probs", current);
        batch.requireFinite("reference log-probs", reference);
        batch.requireFinite("behavior log-probs", behavior);
        double[] coefficients = aggregation.coefficients(batch, whole);
        float[] perToken = new float[batch.tokenCount()];
        float[] gradient = new float[batch.tokenCount()];
        double total = 0.0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double sum = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double d = (double) current[t] - reference[t];
                    double w = Math.exp(LogRatio.bounded((double) current[t] - behavior[t]));
                    double value = term.value().of(d, w);
                    sum += value;
                    perToken[t] = (float) value;
                    gradient[t] = (float) (coefficients[s] * term.derivative().of(d, w));
                }
            }
            total += coefficients[s] * sum;
        }
        return new KlResult(total, perToken, use == KlUse.LOSS ? gradient : new float[gradient.length]);
    }

    @Override
    public String toString() {
        return divergence + " KL from tokens of the " + sampling + " policy as " + use + ": " + formula();
    }

    /** Which estimators are right for what, and the reason why the others are not. */
    static final class KlRules {
        private KlRules() {}

        static void require(
                KlDivergence divergence, KlSampling sampling, KlUse use, KlEstimator estimator, KlWeighting weighting) {
            String objection = objection(divergence, sampling, use, estimator, weighting);
            if (objection != null) {
                throw new KlMisuseException(objection + "; use " + remedy(divergence, sampling, use));
            }
        }

        private static @Nullable String objection(
                KlDivergence divergence, KlSampling sampling, KlUse use, KlEstimator estimator, KlWeighting weighting) {
            if (sampling == KlSampling.REFERENCE) {
                return "k1, k2 and k3 are estimators for tokens of the current policy, or of one it is weighed against;"
                        + " these tokens were sampled by the reference";
            }
            if (use == KlUse.REWARD) {
                return reward(divergence, estimator, weighting);
            }
            if (sampling == KlSampling.BEHAVIOR && weighting == KlWeighting.NONE) {
                return "the tokens were sampled by the behavior policy, so without a weight the expectation is over the"
                        + " wrong policy";
            }
            if (sampling == KlSampling.CURRENT && weighting != KlWeighting.NONE) {
                return "the tokens were sampled by the current policy, so there is nothing to weigh";
            }
            return use == KlUse.VALUE ? value(divergence, estimator) : loss(divergence, estimator, weighting);
        }

        private static @Nullable String reward(KlDivergence divergence, KlEstimator estimator, KlWeighting weighting) {
            if (weighting != KlWeighting.NONE) {
                return "the objective already weighs the token; a weighted penalty in the reward would weigh it twice";
            }
            if (divergence == REVERSE && estimator.form() != KlForm.K1) {
                return switch (estimator.form()) {
                    case K3, K3_CAPPED ->
                        "k3 in the reward pushes along the gradient of KL(current‖reference) minus that"
                                + " of KL(reference‖current)";
                    default ->
                        estimator.form() + " in the reward is not the KL of the policy: only k1 has it as"
                                + " expectation and as policy gradient";
                };
            }
            return divergence == FORWARD ? "no form of k1, k2, k3 in the reward gives the forward KL" : null;
        }

        private static @Nullable String value(KlDivergence divergence, KlEstimator estimator) {
            if (divergence == FORWARD) {
                return "k1, k2 and k3 estimate KL(current‖reference), not KL(reference‖current)";
            }
            return switch (estimator.form()) {
                case K1, K3 -> null;
                case K3_CAPPED -> "k3 cut off at 10 underestimates";
                case K2 -> "k2 is biased: its expectation is the f-divergence E[d²/2]";
                case ABS -> "|d| is not a KL: it does not vanish to second order";
            };
        }

        private static @Nullable String loss(KlDivergence divergence, KlEstimator estimator, KlWeighting weighting) {
            boolean live = weighting == KlWeighting.LIVE;
            boolean gradientOfK2 = estimator.straightThrough() || estimator.form() == KlForm.K2;
            if (gradientOfK2) {
                return divergence == FORWARD
                        ? "the gradient of k2 is that of KL(current‖reference)"
                        : live
                                ? "k2 under a weight that is differentiated optimises the f-divergence E[d²/2], not the KL"
                                : null;
            }
            return switch (estimator.form()) {
                case K1 -> k1Loss(divergence, live);
                case K3 -> k3Loss(divergence, live);
                case K3_CAPPED -> "k3 cut off at 10 has no gradient where the divergence is largest";
                default -> "the gradient of |d| is that of the L1 distance";
            };
        }

        private static @Nullable String k1Loss(KlDivergence divergence, boolean live) {
            if (!live) {
                return "k1 as a loss has zero gradient: the gradient of log π averages to 0 under the policy itself, what"
                        + " remains is noise";
            }
            return divergence == FORWARD ? "k1 under a differentiated weight optimises KL(current‖reference)" : null;
        }

        private static @Nullable String k3Loss(KlDivergence divergence, boolean live) {
            if (divergence == REVERSE) {
                return live
                        ? null
                        : "the gradient of k3 is that of KL(reference‖current), the forward KL, although its"
                                + " value is the reverse one";
            }
            return live ? "k3 under a differentiated weight optimises KL(current‖reference)" : null;
        }

        private static String remedy(KlDivergence divergence, KlSampling sampling, KlUse use) {
            try {
                return KlTerms.best(divergence, sampling, use).formula();
            } catch (KlMisuseException none) {
                return "another purpose: " + none.getMessage();
            }
        }
    }
}
