package dev.millrace.stages;

/**
 * Every correction between a rollout and the gradient that is decided before the learner sees it.
 *
 * @param rolloutCorrection importance weights and rejection
 * @param advantage advantages of a group
 * @param staleness hard limits on staleness at assembly
 * @param sequenceMask off-policy sequence mask over a batch
 * @param m2po second-moment mask over a batch
 * @param ess step size by effective sample size
 */
public record CorrectionConfig(RolloutCorrectionOptions rolloutCorrection, AdvantageConfig advantage, StalenessConfig staleness,
    SequenceMaskConfig sequenceMask, M2poConfig m2po, EssConfig ess) {

    /** The defaults of each. */
    public static CorrectionConfig defaults() {
        return new CorrectionConfig(RolloutCorrectionOptions.defaults(), AdvantageConfig.defaults(), StalenessConfig.defaults(),
            SequenceMaskConfig.defaults(), M2poConfig.defaults(), EssConfig.defaults());
    }
}
