package dev.millrace.corrections.kl;

import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;

/** Configuration of the divergence from a reference policy. */
public sealed interface KlConfig {

    /** How much it counts; empty where it does not. */
    default Optional<CoefficientConfig> howMuch() {
        if (this instanceof InLoss loss) {
            return Optional.of(loss.coefficient());
        }
        if (this instanceof InReward reward) {
            return Optional.of(reward.coefficient());
        }
        return this instanceof Centred centred ? Optional.of(centred.coefficient()) : Optional.empty();
    }

    /** Source of the reference's log-probs; empty if not needed. */
    default Optional<ReferenceConfig> against() {
        if (this instanceof InLoss loss) {
            return Optional.of(loss.reference());
        }
        if (this instanceof InReward reward) {
            return Optional.of(reward.reference());
        }
        return this instanceof Centred centred ? Optional.of(centred.reference()) : Optional.empty();
    }

    /** Returns whether the reference is the learner itself. */
    default boolean againstLearner() {
        return against().filter(ReferenceConfig.Learner.class::isInstance).isPresent();
    }

    record Off() implements KlConfig {}

    /**
     * In the loss: {@code loss + coefficient · KL}, aggregated as the policy loss is. Tokens were sampled by the behavior policy,
     * so each term is weighed by current over behavior.
     *
     * @param divergence direction of the KL
     * @param klLossType estimator by verl's name ({@code k1}, {@code k2}, {@code low_var_kl}, ..., {@code +} for the
     *     gradient of k2), without verl's cut of k3 at 10; empty for the least variance
     * @param weighting gradient of the weight; detached has the least variance
     * @param coefficient coefficient
     * @param reference source of the reference's log-probs
     */
    record InLoss(
            KlDivergence divergence,
            String klLossType,
            KlWeighting weighting,
            CoefficientConfig coefficient,
            ReferenceConfig reference)
            implements KlConfig {
        public InLoss {
            if (klLossType.isEmpty() && weighting != KlWeighting.DETACHED) {
                throw new IllegalArgumentException("weighting must be detached where kl_loss_type is empty, since the"
                        + " estimator of least variance has its own; also name a kl_loss_type: "
                        + weighting.name().toLowerCase(Locale.ROOT));
            }
            plan(divergence, klLossType, weighting);
            requireReference(reference);
        }

        /** The reverse divergence, with the estimator of least variance. */
        public static InLoss defaults() {
            return new InLoss(
                    KlDivergence.REVERSE,
                    "",
                    KlWeighting.DETACHED,
                    CoefficientConfig.Fixed.defaults(),
                    ReferenceConfig.defaults());
        }

        /** What is added to the loss. */
        public KlPlan plan() {
            return plan(divergence, klLossType, weighting);
        }

        private static KlPlan plan(KlDivergence divergence, String klLossType, KlWeighting weighting) {
            if (klLossType.isEmpty()) {
                return KlPlan.of(divergence, KlSampling.BEHAVIOR, KlUse.LOSS);
            }
            try {
                return KlPlan.insisting(divergence, KlSampling.BEHAVIOR, KlUse.LOSS, uncapped(klLossType), weighting);
            } catch (KlMisuseException refused) {
                throw new IllegalArgumentException(
                        "kl_loss_type=" + klLossType + ": " + refused.getMessage()
                                + ", which an empty kl_loss_type with weighting=detached is",
                        refused);
            } catch (IllegalArgumentException unknown) {
                throw new IllegalArgumentException("kl_loss_type=" + klLossType + ": " + unknown.getMessage(), unknown);
            }
        }

        /** k3 for verl's, whose cut at 10 takes the gradient from the tokens that diverged most. */
        private static KlEstimator uncapped(String klLossType) {
            KlEstimator named = KlEstimator.named(klLossType);
            return named.form() == KlForm.K3_CAPPED && !named.straightThrough()
                    ? new KlEstimator(KlForm.K3, false)
                    : named;
        }
    }

    /**
     * In the reward: a sequence's reward less {@code coefficient · Σ penalty} over its trained tokens, from which the group's
     * advantages are taken anew: see {@link InRewardPenalty}.
     *
     * @param divergence direction of the KL
     * @param weighted whether each token's penalty is weighed by proximal over behavior, truncated as the update's weights are;
     *     a weight per sequence weighs the penalty already
     * @param coefficient coefficient
     * @param reference source of the reference's log-probs
     */
    record InReward(KlDivergence divergence, boolean weighted, CoefficientConfig coefficient, ReferenceConfig reference)
            implements KlConfig {
        public InReward {
            requireReference(reference);
        }

        /** The reverse divergence, unweighted. */
        public static InReward defaults() {
            return new InReward(
                    KlDivergence.REVERSE, false, CoefficientConfig.Fixed.defaults(), ReferenceConfig.defaults());
        }

        /** @param cap bound of the update's own weights; empty where they have none */
        public InRewardPenalty penalty(OptionalDouble cap) {
            return weighted ? InRewardPenalty.weighted(divergence, cap) : new InRewardPenalty(divergence);
        }
    }

    private static void requireReference(ReferenceConfig reference) {
        if (reference instanceof ReferenceConfig.Learner) {
            throw new IllegalArgumentException(
                    "reference.kind=learner takes the learner for the policy to stay close to, and only"
                            + " kl.kind=centred charges the sampler for that; choose recorded or version, or kl.kind=centred");
        }
    }

    /**
     * In the advantage, centred on its own average, so that it moves probability between tokens and takes none from all of them:
     * see {@link AverageCentredPenalty}.
     *
     * @param discount discount of the drift of later tokens, in [0, 1]; 0 ignores it
     * @param coefficient coefficient
     * @param reference source of the log-probs that the sampler's are compared with
     */
    record Centred(double discount, CoefficientConfig coefficient, ReferenceConfig reference) implements KlConfig {
        public Centred {
            AverageCentredPenalty.requireDiscount(discount);
        }

        /** Each token for itself. */
        public static Centred defaults() {
            return new Centred(0, CoefficientConfig.Fixed.defaults(), ReferenceConfig.defaults());
        }

        public AverageCentredPenalty stage(double coefficientInForce) {
            return new AverageCentredPenalty(coefficientInForce, discount);
        }
    }
}
