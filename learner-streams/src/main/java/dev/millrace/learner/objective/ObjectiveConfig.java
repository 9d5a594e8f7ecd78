package dev.millrace.learner.objective;

import static dev.millrace.learner.objective.Bounds.aboveOne;
import static dev.millrace.learner.objective.Bounds.aroundOne;
import static dev.millrace.learner.objective.Bounds.atLeastZero;
import static dev.millrace.learner.objective.Bounds.positive;
import static dev.millrace.learner.objective.Bounds.inUnit;
import static dev.millrace.learner.objective.Losses.bypassPpoClip;
import static dev.millrace.learner.objective.Losses.bypassReinforce;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.learner.control.ControlState;
import dev.millrace.learner.objective.AggregationConfig.SeqMeanTokenMean;
import dev.millrace.learner.objective.AggregationConfig.TokenMean;
import dev.millrace.stages.ComparedPolicies;
import java.util.Optional;

/**
 * The loss. Each kind is an objective of {@code dev.millrace.corrections.objective}, whose class has the formula and its
 * source; a kind has the settings that this objective reads and no others.
 *
 * <p>In all kinds that take them, the batch's importance weights multiply a token's loss and are not differentiated.
 */
public sealed interface ObjectiveConfig
        permits ObjectiveConfig.Reinforce, ObjectiveConfig.PpoClip, ObjectiveConfig.DecoupledPpo, ObjectiveConfig.Gspo,
            ObjectiveConfig.GspoToken, ObjectiveConfig.Gmpo, ObjectiveConfig.DppoTv, ObjectiveConfig.DppoKl,
            ObjectiveConfig.Sapo, ObjectiveConfig.SequenceSapo, ObjectiveConfig.Cispo, ObjectiveConfig.Dro,
            ObjectiveConfig.KlCov, ObjectiveConfig.ClipCov, ObjectiveConfig.M2po, ObjectiveConfig.Oapl,
            ObjectiveConfig.R2vpo, ObjectiveConfig.Quatro, ObjectiveConfig.Topr, ObjectiveConfig.Aspo,
            ObjectiveConfig.Dispo, ObjectiveConfig.BypassPpoClip, ObjectiveConfig.BypassReinforce {

    /** How token losses, the entropy bonus and a KL term become one number. */
    AggregationConfig aggregation();

    /** The objective of one update; made anew for each, since denominators differ. */
    Objective objective(UpdateFacts facts);

    /** The policy that the objective's ratio is taken to. */
    default Anchor anchor() {
        return Anchor.PROXIMAL;
    }

    /** What the importance weights beside the loss have to compare; empty if the loss corrects by itself and takes none. */
    default Optional<ComparedPolicies> weightsCompare() {
        return anchor().weightsCompare();
    }

    /**
     * True if the loss is linear in the current log-probs: its gradient is then known without a forward pass, and it has no
     * trust region, so it is right for one step on a batch and no more.
     */
    default boolean linear() {
        return false;
    }

    /** True if a decision is about whole groups, so that no group may be cut into minibatches. */
    default boolean needsWholeGroups() {
        return false;
    }

    /** What is to be remembered after an update with this result; objectives without a memory change nothing. */
    default ControlState remembered(ControlState controls, ObjectiveResult result) {
        return controls;
    }

    /** True if the advantages have to be those of the KL-regularised optimum. */
    default boolean regressesOnOptimalAdvantage() {
        return false;
    }

    /** The policy gradient under the batch's importance weights. */
    static ObjectiveConfig defaults() {
        return Reinforce.defaults();
    }

    /**
     * The policy gradient {@code −w A log π}; no trust region.
     *
     * @param aggregation how token losses become one number
     */
    record Reinforce(AggregationConfig aggregation) implements ObjectiveConfig {
        public static Reinforce defaults() {
            return new Reinforce(new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.reinforce(aggregation.over(GlobalBatch.WHOLE));
        }

        @Override
        public boolean linear() {
            return true;
        }
    }

    /**
     * PPO's clipped surrogate with the dual clip.
     *
     * @param anchor      the policy that the trust region is around
     * @param clipLow     the ratio moves freely down to {@code 1 - clip_low}
     * @param clipHigh    and up to {@code 1 + clip_high}
     * @param dualClip    largest ratio that counts against a token with negative advantage; above 1
     * @param aggregation how token losses become one number
     */
    record PpoClip(Anchor anchor, double clipLow, double clipHigh, double dualClip, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public PpoClip {
            atLeastZero("clip_low", clipLow);
            atLeastZero("clip_high", clipHigh);
            aboveOne("dual_clip", dualClip);
        }

        public static PpoClip defaults() {
            return new PpoClip(Anchor.OLD, 0.2, 0.2, 3, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.ppoClip(clipLow, clipHigh, dualClip, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * Decoupled PPO (AReaL): the clipped surrogate around the proximal policy, under weights of proximal over behavior.
     *
     * @param clipLow     the ratio moves freely down to {@code 1 - clip_low}
     * @param clipHigh    and up to {@code 1 + clip_high}
     * @param dualClip    largest ratio that counts against a token with negative advantage; above 1
     * @param aggregation how token losses become one number
     */
    record DecoupledPpo(double clipLow, double clipHigh, double dualClip, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public DecoupledPpo {
            atLeastZero("clip_low", clipLow);
            atLeastZero("clip_high", clipHigh);
            aboveOne("dual_clip", dualClip);
        }

        public static DecoupledPpo defaults() {
            return new DecoupledPpo(0.2, 0.2, 3, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.ppoClip(clipLow, clipHigh, dualClip, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * GSPO: the clipped surrogate of the sequence's ratio, a geometric mean over its tokens.
     *
     * @param anchor      the policy that the trust region is around
     * @param clipLow     the sequence's ratio moves freely down to {@code 1 - clip_low}; far narrower than a token's
     * @param clipHigh    and up to {@code 1 + clip_high}
     * @param dualClip    largest ratio that counts against a sequence with negative advantage; above 1
     * @param aggregation how token losses become one number
     */
    record Gspo(Anchor anchor, double clipLow, double clipHigh, double dualClip, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public Gspo {
            atLeastZero("clip_low", clipLow);
            atLeastZero("clip_high", clipHigh);
            aboveOne("dual_clip", dualClip);
        }

        public static Gspo defaults() {
            return new Gspo(Anchor.PROXIMAL, 3e-4, 4e-4, 3, new SeqMeanTokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.gspo(clipLow, clipHigh, dualClip, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * GSPO-token: the sequence's ratio with the token's gradient; what verl calls gspo.
     *
     * @param anchor      the policy that the trust region is around
     * @param clipLow     the sequence's ratio moves freely down to {@code 1 - clip_low}; far narrower than a token's
     * @param clipHigh    and up to {@code 1 + clip_high}
     * @param aggregation how token losses become one number
     */
    record GspoToken(Anchor anchor, double clipLow, double clipHigh, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public GspoToken {
            atLeastZero("clip_low", clipLow);
            atLeastZero("clip_high", clipHigh);
        }

        public static GspoToken defaults() {
            return new GspoToken(Anchor.PROXIMAL, 3e-4, 4e-4, new SeqMeanTokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.gspoToken(clipLow, clipHigh, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * GMPO: the geometric mean of token ratios that are clipped one by one; a mean over sequences.
     *
     * @param anchor   the policy that the trust region is around
     * @param clipLow  a token's log ratio moves freely down to {@code -clip_low}
     * @param clipHigh and up to {@code clip_high}
     */
    record Gmpo(Anchor anchor, double clipLow, double clipHigh) implements ObjectiveConfig {
        public Gmpo {
            atLeastZero("clip_low", clipLow);
            atLeastZero("clip_high", clipHigh);
        }

        public static Gmpo defaults() {
            return new Gmpo(Anchor.PROXIMAL, 0.4, 0.4);
        }

        @Override
        public AggregationConfig aggregation() {
            return new SeqMeanTokenMean();
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.gmpo(clipLow, clipHigh);
        }
    }

    /**
     * DPPO with a bound on the change of a token's probability.
     *
     * @param anchor      the policy that the trust region is around
     * @param low         how far a probability may fall before pushing it down further has no gradient
     * @param high        how far it may rise before pushing it up further has none
     * @param truncation  largest ratio that weighs a token
     * @param aggregation how token losses become one number
     */
    record DppoTv(Anchor anchor, double low, double high, double truncation, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public DppoTv {
            atLeastZero("low", low);
            atLeastZero("high", high);
            positive("truncation", truncation);
        }

        public static DppoTv defaults() {
            return new DppoTv(Anchor.PROXIMAL, 0.2, 0.2, 20, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.dppoTv(low, high, truncation, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * DPPO with a bound on the divergence of a token's probability.
     *
     * @param anchor      the policy that the trust region is around
     * @param low         divergence in nats beyond which pushing a token down further has no gradient
     * @param high        divergence beyond which pushing it up further has none
     * @param truncation  largest ratio that weighs a token
     * @param aggregation how token losses become one number
     */
    record DppoKl(Anchor anchor, double low, double high, double truncation, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public DppoKl {
            atLeastZero("low", low);
            atLeastZero("high", high);
            positive("truncation", truncation);
        }

        public static DppoKl defaults() {
            return new DppoKl(Anchor.PROXIMAL, 0.05, 0.05, 20, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.dppoKl(low, high, truncation, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * SAPO: a soft gate on a token's ratio instead of a clip.
     *
     * @param anchor      the policy that the gate is around
     * @param tauPositive temperature of the gate where the advantage is positive
     * @param tauNegative and where it is not; larger fades sooner
     * @param aggregation how token losses become one number
     */
    record Sapo(Anchor anchor, double tauPositive, double tauNegative, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public Sapo {
            positive("tau_positive", tauPositive);
            positive("tau_negative", tauNegative);
        }

        public static Sapo defaults() {
            return new Sapo(Anchor.PROXIMAL, 1, 1.05, new SeqMeanTokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.sapo(tauPositive, tauNegative, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * SAPO's soft gate on the sequence's ratio.
     *
     * @param anchor      the policy that the gate is around
     * @param tauPositive temperature of the gate where the advantage is positive
     * @param tauNegative and where it is not; larger fades sooner
     * @param aggregation how token losses become one number
     */
    record SequenceSapo(Anchor anchor, double tauPositive, double tauNegative, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public SequenceSapo {
            positive("tau_positive", tauPositive);
            positive("tau_negative", tauNegative);
        }

        public static SequenceSapo defaults() {
            return new SequenceSapo(Anchor.PROXIMAL, 1, 1.05, new SeqMeanTokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.sequenceSapo(tauPositive, tauNegative, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * CISPO: the ratio is clipped as a weight, so every token keeps a gradient.
     *
     * @param anchor      the policy that the ratio is taken to
     * @param clipLow     the weight is at least {@code 1 - clip_low}; 1 for no such bound
     * @param clipHigh    and at most {@code 1 + clip_high}
     * @param aggregation how token losses become one number
     */
    record Cispo(Anchor anchor, double clipLow, double clipHigh, AggregationConfig aggregation)
            implements ObjectiveConfig {
        public Cispo {
            atLeastZero("clip_low", clipLow);
            atLeastZero("clip_high", clipHigh);
        }

        public static Cispo defaults() {
            return new Cispo(Anchor.PROXIMAL, 1, 0.2, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.cispo(clipLow, clipHigh, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * DRO: the policy gradient with a quadratic leash; no ratio is formed.
     *
     * @param anchor      the policy that the leash is tied to
     * @param beta        strength of the leash
     * @param aggregation how token losses become one number
     */
    record Dro(Anchor anchor, double beta, AggregationConfig aggregation) implements ObjectiveConfig {
        public Dro {
            atLeastZero("beta", beta);
        }

        public static Dro defaults() {
            return new Dro(Anchor.PROXIMAL, 0.1, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.dro(beta, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * KL-Cov: the unclipped surrogate, with a penalty on the tokens through which entropy falls.
     *
     * @param anchor      the policy that ratio and penalty are taken to
     * @param share       share of the trained tokens that are held
     * @param penalty     on the absolute log ratio of a held token
     * @param aggregation how token losses become one number
     */
    record KlCov(Anchor anchor, double share, double penalty, AggregationConfig aggregation) implements ObjectiveConfig {
        public KlCov {
            inUnit("share", share);
            atLeastZero("penalty", penalty);
        }

        public static KlCov defaults() {
            return new KlCov(Anchor.PROXIMAL, 2e-4, 1, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.klCov(share, penalty, aggregation.over(GlobalBatch.WHOLE));
        }
    }

    /**
     * Clip-Cov: PPO's clipped surrogate, silenced on a few tokens drawn from those through which entropy falls; which, is
     * seeded by the optimiser's step, so that a repeated step draws the same.
     *
     * @param anchor         the policy that the trust region is around
     * @param clipLow        the ratio moves freely down to {@code 1 - clip_low}
     * @param clipHigh       and up to {@code 1 + clip_high}
     * @param share          share of the trained tokens that are silenced
     * @param covarianceLow  a candidate's covariance of advantage and log-prob is above this
     * @param covarianceHigh and below this
     * @param aggregation    how token losses become one number
     */
    record ClipCov(Anchor anchor, double clipLow, double clipHigh, double share, double covarianceLow,
                   double covarianceHigh, AggregationConfig aggregation) implements ObjectiveConfig {
        public ClipCov {
            atLeastZero("clip_low", clipLow);
            atLeastZero("clip_high", clipHigh);
            inUnit("share", share);
            if (!(covarianceLow < covarianceHigh)) {
                throw new IllegalArgumentException("covariance_low must be below covariance_high=" + covarianceHigh + ": "
                    + covarianceLow);
            }
        }

        public static ClipCov defaults() {
            return new ClipCov(Anchor.PROXIMAL, 0.2, 0.2, 2e-4, 1, 5, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.clipCov(this, facts.optimizerSteps());
        }
    }

    /**
     * M2PO's surrogate: no ratio is clipped, the second-moment mask is the trust region, and the loss is divided by the
     * tokens there were before that mask.
     *
     * @param anchor the policy that the ratio is taken to
     */
    record M2po(Anchor anchor) implements ObjectiveConfig {
        public static M2po defaults() {
            return new M2po(Anchor.PROXIMAL);
        }

        @Override
        public AggregationConfig aggregation() {
            return new TokenMean();
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.m2po(aggregation().over(facts.beforeMasking()));
        }
    }

    /**
     * OAPL: regression of the sequence's log ratio to the behavior policy onto the optimal advantage; a mean over sequences.
     *
     * @param beta temperature of the regression
     */
    record Oapl(double beta) implements ObjectiveConfig {
        public Oapl {
            positive("beta", beta);
        }

        public static Oapl defaults() {
            return new Oapl(0.1);
        }

        @Override
        public AggregationConfig aggregation() {
            return new SeqMeanTokenMean();
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.oapl(beta);
        }

        @Override
        public Anchor anchor() {
            return Anchor.BEHAVIOR;
        }

        @Override
        public boolean regressesOnOptimalAdvantage() {
            return true;
        }
    }

    /**
     * R²VPO: a penalty on the variance of the ratio in the place of clipping. Its multiplier rises after an update whose ratios
     * varied more than the budget, and falls after one that kept it; it is part of the version.
     *
     * @param anchor      the policy that the ratio is taken to
     * @param multiplier  of the penalty at the first update
     * @param budget      largest variance of the ratio wanted, over trained tokens; positive
     * @param rate        how far the multiplier moves for each unit of variance beyond the budget; 0 keeps it where it is
     * @param smallest    lower limit of the multiplier, positive
     * @param largest     upper limit
     * @param aggregation how token losses become one number
     */
    record R2vpo(Anchor anchor, double multiplier, double budget, double rate, double smallest, double largest,
                 AggregationConfig aggregation) implements ObjectiveConfig {
        /** Under which the multiplier is remembered. */
        static final String MULTIPLIER = "objective.r2vpo.multiplier";

        public R2vpo {
            positive("budget", budget);
            atLeastZero("rate", rate);
            positive("smallest", smallest);
            if (!(smallest <= multiplier && multiplier <= largest && largest < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("smallest <= multiplier <= largest must hold, and largest be finite: smallest="
                    + smallest + ", multiplier=" + multiplier + ", largest=" + largest);
            }
        }

        public static R2vpo defaults() {
            return new R2vpo(Anchor.PROXIMAL, 1, 0.02, 1, 0.01, 100, new TokenMean());
        }

        private double now(ControlState controls) {
            return Math.max(smallest, Math.min(largest, controls.get(MULTIPLIER).orElse(multiplier)));
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.r2vpo(now(facts.controls()), aggregation.over(GlobalBatch.WHOLE));
        }

        @Override
        public ControlState remembered(ControlState controls, ObjectiveResult result) {
            return rate == 0 ? controls : controls.with(MULTIPLIER, Losses.nextMultiplier(this, now(controls), result));
        }
    }

    /**
     * QUATRO: a trust region for every prompt, whose multiplier is solved for over the prompt's answers. A mean over sequences.
     *
     * @param budget             divergence from the behavior policy allowed for each prompt, in nats, over whole answers; positive
     * @param smallestMultiplier the multiplier where the budget does not bind, and the least one otherwise; positive
     */
    record Quatro(double budget, double smallestMultiplier) implements ObjectiveConfig {
        public Quatro {
            positive("budget", budget);
            positive("smallest_multiplier", smallestMultiplier);
        }

        public static Quatro defaults() {
            return new Quatro(0.05, 0.1);
        }

        @Override
        public AggregationConfig aggregation() {
            return new SeqMeanTokenMean();
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.quatro(budget, smallestMultiplier);
        }

        @Override
        public Anchor anchor() {
            return Anchor.BEHAVIOR;
        }

        @Override
        public boolean needsWholeGroups() {
            return true;
        }
    }

    /**
     * TOPR: good answers at weight 1, bad ones truncated at 1; weights are current over behavior.
     *
     * @param aggregation how token losses become one number
     */
    record Topr(AggregationConfig aggregation) implements ObjectiveConfig {
        public static Topr defaults() {
            return new Topr(new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.topr(aggregation.over(GlobalBatch.WHOLE));
        }

        @Override
        public Anchor anchor() {
            return Anchor.BEHAVIOR;
        }
    }

    /**
     * ASPO: the ratio to the behavior policy, flipped for positive advantages, masked where PPO would clip.
     *
     * @param clipLow     the clip range below 1; below 1
     * @param clipHigh    the clip range above 1
     * @param cap         largest weight
     * @param aggregation how token losses become one number
     */
    record Aspo(double clipLow, double clipHigh, double cap, AggregationConfig aggregation) implements ObjectiveConfig {
        public Aspo {
            if (!(clipLow > 0 && clipLow < 1)) {
                throw new IllegalArgumentException("clip_low must be above 0 and below 1: " + clipLow);
            }
            positive("clip_high", clipHigh);
            if (!(cap >= 1 && cap < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("cap must be at least 1 and finite: " + cap);
            }
        }

        public static Aspo defaults() {
            return new Aspo(0.2, 0.2, 3, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.aspo(clipLow, clipHigh, cap, aggregation.over(GlobalBatch.WHOLE));
        }

        @Override
        public Anchor anchor() {
            return Anchor.BEHAVIOR;
        }
    }

    /**
     * DISPO: the ratio to the behavior policy, bounded differently for correct and for incorrect answers.
     *
     * @param correctLower   smallest weight for a positive advantage
     * @param correctUpper   largest weight for a positive advantage
     * @param incorrectLower smallest weight for a negative advantage
     * @param incorrectUpper largest weight for a negative advantage
     * @param aggregation    how token losses become one number
     */
    record Dispo(double correctLower, double correctUpper, double incorrectLower, double incorrectUpper,
                 AggregationConfig aggregation) implements ObjectiveConfig {
        public Dispo {
            aroundOne("correct_lower", correctLower, "correct_upper", correctUpper);
            aroundOne("incorrect_lower", incorrectLower, "incorrect_upper", incorrectUpper);
        }

        public static Dispo defaults() {
            return new Dispo(0.8, 5, 0.8, 1.2, new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return Losses.dispo(this);
        }

        @Override
        public Anchor anchor() {
            return Anchor.BEHAVIOR;
        }
    }

    /**
     * verl's bypass mode with PPO's clip: the trust region is around the behavior policy, rejection is decided from current
     * over behavior at every update, and the loss is divided by what there was before it.
     *
     * @param clipLow            the ratio moves freely down to {@code 1 - clip_low}
     * @param clipHigh           and up to {@code 1 + clip_high}
     * @param dualClip           largest ratio that counts against a token with negative advantage; above 1
     * @param rolloutRs          comma-separated rejections, such as {@code seq_mean_k3}; empty for none
     * @param rolloutRsThreshold one bound for all of them, or one for each; empty without rejections
     * @param aggregation        how token losses become one number
     */
    record BypassPpoClip(double clipLow, double clipHigh, double dualClip, String rolloutRs, String rolloutRsThreshold,
                         AggregationConfig aggregation) implements ObjectiveConfig {
        public BypassPpoClip {
            atLeastZero("clip_low", clipLow);
            atLeastZero("clip_high", clipHigh);
            aboveOne("dual_clip", dualClip);
            Losses.requireBypass("", "", rolloutRs, rolloutRsThreshold, "ppo_clip");
        }

        public static BypassPpoClip defaults() {
            return new BypassPpoClip(0.2, 0.2, 3, "", "", new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return bypassPpoClip(this, facts.beforeRejection());
        }

        @Override
        public Anchor anchor() {
            return Anchor.BEHAVIOR;
        }
    }

    /**
     * verl's bypass mode with the policy gradient: weights and rejection are made from current over behavior at every
     * update, and the loss is divided by what there was before the rejection.
     *
     * @param rolloutIs          weights per {@code token} or per {@code sequence}; empty for none
     * @param rolloutIsThreshold {@code upper} truncates weights at it, {@code lower_upper} sets those outside to 0; empty
     *     without weights
     * @param rolloutRs          comma-separated rejections, such as {@code seq_mean_k3}; empty for none
     * @param rolloutRsThreshold one bound for all of them, or one for each; empty without rejections
     * @param aggregation        how token losses become one number
     */
    record BypassReinforce(String rolloutIs, String rolloutIsThreshold, String rolloutRs, String rolloutRsThreshold,
                           AggregationConfig aggregation) implements ObjectiveConfig {
        public BypassReinforce {
            Losses.requireBypass(rolloutIs, rolloutIsThreshold, rolloutRs, rolloutRsThreshold, "reinforce");
        }

        public static BypassReinforce defaults() {
            return new BypassReinforce("sequence", "2.0", "", "", new TokenMean());
        }

        @Override
        public Objective objective(UpdateFacts facts) {
            return bypassReinforce(this, facts.beforeRejection());
        }

        @Override
        public Anchor anchor() {
            return Anchor.BEHAVIOR;
        }
    }
}
