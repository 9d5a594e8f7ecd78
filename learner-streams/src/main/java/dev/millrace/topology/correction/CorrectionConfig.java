package dev.millrace.topology.correction;

/**
 * Every correction between a rollout and the gradient that is decided before the learner sees it.
 *
 * @param weights importance weights of a trajectory's tokens
 * @param advantage advantages of a group
 * @param staleness hard limit on staleness at assembly
 * @param m2po second-moment mask over a batch
 * @param ess step size by effective sample size
 */
public record CorrectionConfig(WeightsConfig weights, AdvantageConfig advantage, StalenessConfig staleness, M2poConfig m2po,
    EssConfig ess) {

    /** The defaults of each. */
    public static CorrectionConfig defaults() {
        return new CorrectionConfig(WeightsConfig.defaults(), AdvantageConfig.defaults(), StalenessConfig.defaults(),
            M2poConfig.defaults(), EssConfig.defaults());
    }
}
