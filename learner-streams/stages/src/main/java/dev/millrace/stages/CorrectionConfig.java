package dev.millrace.stages;

import java.util.Locale;

/**
 * Every correction between a rollout and the gradient that is decided before the learner sees it.
 *
 * @param rolloutCorrection importance weights and rejection
 * @param advantage advantages of a group
 * @param staleness hard limits on staleness at assembly
 * @param sequenceMask off-policy sequence mask over a batch
 * @param m2po second-moment mask over a batch
 * @param ess step size by effective sample size
 * @param missingOldLogProbs what becomes of a rollout under whose version the scorer cannot score, because its weights are gone:
 *     with {@code recompute} there is no way but to score, and it leaves as {@code version-unavailable}; with
 *     {@code interpolate} it is trained on with proximal log-probs between behavior and current; with {@code mask} it only
 *     serves as a sibling
 */
public record CorrectionConfig(
        RolloutCorrectionOptions rolloutCorrection,
        AdvantageConfig advantage,
        StalenessConfig staleness,
        SequenceMaskConfig sequenceMask,
        M2poMaskConfig m2po,
        EssConfig ess,
        MissingOldLogProbs missingOldLogProbs) {

    public CorrectionConfig {
        if (missingOldLogProbs == MissingOldLogProbs.INTERPOLATE
                && rolloutCorrection.compare() != ComparedPolicies.ANCHOR) {
            throw new IllegalArgumentException(
                    "missing_old_log_probs=interpolate needs rollout_correction.compare=anchor (proximal"
                            + " over behavior): "
                            + rolloutCorrection.compare().name().toLowerCase(Locale.ROOT)
                            + " compares old log-probs, which"
                            + " such a rollout does not have; choose missing_old_log_probs=mask or recompute");
        }
    }

    /** The defaults of each. */
    public static CorrectionConfig defaults() {
        return new CorrectionConfig(
                RolloutCorrectionOptions.defaults(),
                AdvantageConfig.defaults(),
                StalenessConfig.defaults(),
                SequenceMaskConfig.defaults(),
                M2poMaskConfig.defaults(),
                EssConfig.defaults(),
                MissingOldLogProbs.RECOMPUTE);
    }
}
