package dev.millrace.experiments;

import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.learner.step.BaselineConfig;
import dev.millrace.stages.AdvantageConfig;
import dev.millrace.stages.ComparedPolicies;
import dev.millrace.stages.CorrectionConfig;
import dev.millrace.stages.EssConfig;
import dev.millrace.stages.M2poMaskConfig;
import dev.millrace.stages.MissingOldLogProbs;
import dev.millrace.stages.RolloutCorrectionOptions;
import dev.millrace.stages.SequenceMaskConfig;
import dev.millrace.stages.StalenessConfig;
import java.util.Locale;

/**
 * The corrections that are held against each other, each as the product's own configuration.
 *
 * <p>One thing differs from row to row: batch, advantage, optimiser and learning rate are the same for all. None of them
 * limits staleness, or there would be nothing left to train on at a lag above the limit.
 */
public enum Correction {
    /** {@code -A log π}: rollouts are trained on as if the current policy had sampled them. */
    NONE("no correction", new Reinforce(), "", "2.0", false, EssConfig.Rule.NONE),
    /** The surrogate on current/behavior, clipped to 1 ± 0.2, dual clip at 3. */
    PPO_CLIP("PPO clip", PpoClip.defaults(), "", "2.0", false, EssConfig.Rule.NONE),
    /** {@code -min(ρ, 2) A log π} per token. */
    TOKEN_TIS("token TIS", new Reinforce(), "token", "2.0", false, EssConfig.Rule.NONE),
    /** The same with one weight per sequence, the product of its tokens' ratios. */
    SEQUENCE_TIS("sequence TIS", new Reinforce(), "sequence", "2.0", false, EssConfig.Rule.NONE),
    /** AReaL's: tokens with ρ above 5 are left out, the others weigh ρ; clipped to 1 ± 0.2 around the proximal policy. */
    DECOUPLED_PPO("decoupled PPO", DecoupledPpo.defaults(), "token", "1e-9_5.0", false, EssConfig.Rule.NONE),
    /** {@code -ρ A log π} over what the second-moment mask leaves at 0.04; no truncation worth the name. */
    M2PO("M2PO", new Reinforce(), "token", "1e8", true, EssConfig.Rule.NONE),
    /** Sequence TIS with a step of {@code sqrt(ESS ratio)} and the off-policy optimal baseline in place of the group's mean. */
    VCPO("VCPO", new Reinforce(), "sequence", "2.0", false, EssConfig.Rule.SQRT),
    /** The second-moment mask, then VCPO. */
    M2PO_VCPO("M2PO+VCPO", new Reinforce(), "sequence", "2.0", true, EssConfig.Rule.SQRT);

    private static final double SECOND_MOMENT_BOUND = 0.04;

    private final String title;
    private final Objective objective;
    private final String rolloutIs;
    private final String rolloutIsThreshold;
    private final boolean masksMoments;
    private final EssConfig.Rule ess;

    Correction(
            String title,
            Objective objective,
            String rolloutIs,
            String rolloutIsThreshold,
            boolean masksMoments,
            EssConfig.Rule ess) {
        this.title = title;
        this.objective = objective;
        this.rolloutIs = rolloutIs;
        this.rolloutIsThreshold = rolloutIsThreshold;
        this.masksMoments = masksMoments;
        this.ess = ess;
    }

    /** As a person writes it. */
    String title() {
        return title;
    }

    /** As the command line and the files write it. */
    String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    Objective objective() {
        return objective;
    }

    BaselineConfig baseline() {
        return ess == EssConfig.Rule.NONE ? new BaselineConfig.Group() : BaselineConfig.Opob.defaults();
    }

    CorrectionConfig corrections() {
        ComparedPolicies compare =
                objective.anchor() == Anchor.OLD ? ComparedPolicies.ENGINE_MISMATCH : ComparedPolicies.ANCHOR;
        return new CorrectionConfig(
                new RolloutCorrectionOptions("", compare, rolloutIs, rolloutIsThreshold, "", ""),
                AdvantageConfig.defaults(),
                new StalenessConfig(Long.MAX_VALUE, 0, 0),
                SequenceMaskConfig.defaults(),
                new M2poMaskConfig(masksMoments, SECOND_MOMENT_BOUND, true),
                new EssConfig(ess, EssConfig.defaults().weights(), 1.0),
                MissingOldLogProbs.RECOMPUTE);
    }
}
