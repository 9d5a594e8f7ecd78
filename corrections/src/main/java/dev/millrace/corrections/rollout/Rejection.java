package dev.millrace.corrections.rollout;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Rejection of tokens and of whole sequences by how far two policies are apart, under verl's names; with no rejection it
 * reports verl's off-policy metrics and masks nothing.
 *
 * <p>Unit: token if every rejection is one of tokens, else sequence.
 *
 * @param rolloutRs comma-separated rejections, such as {@code seq_mean_k3}; empty for none
 * @param rolloutRsThreshold one bound for all, or one each, comma-separated
 * @param compare policies compared
 */
public record Rejection(String rolloutRs, String rolloutRsThreshold, ComparedPolicies compare) implements MaskStage {
    public Rejection {
        Objects.requireNonNull(compare, "compare");
        resolve(rolloutRs, rolloutRsThreshold);
    }

    /** None; proximal and behavior are compared. */
    public static Rejection defaults() {
        return new Rejection("", "", ComparedPolicies.ANCHOR);
    }

    public boolean rejects() {
        return !config().rejections().isEmpty();
    }

    @Override
    public String name() {
        return "rollout_correction";
    }

    @Override
    public CorrectionUnit unit() {
        boolean wholeSequences =
                config().rejections().stream().anyMatch(rule -> rule.aggregation() != RejectionAggregation.TOKEN);
        return wholeSequences || !rejects() ? CorrectionUnit.SEQUENCE : CorrectionUnit.TOKEN;
    }

    @Override
    public Set<StageInput> inputs() {
        return StageFacts.policies(compare.kind());
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        if (batch.left().trainedTokens() == 0) {
            return batch.mask(this, batch.left().mask(), Map.of());
        }
        var result = new RolloutCorrection(config())
                .apply(batch.left(), batch.facts().ratio(compare.kind()));
        return batch.mask(this, result.mask(), result.metrics());
    }

    private RolloutCorrectionConfig config() {
        return resolve(rolloutRs, rolloutRsThreshold);
    }

    private static RolloutCorrectionConfig resolve(String rolloutRs, String threshold) {
        return new RolloutCorrectionSettings(
                        null, null, false, emptyAsNull(rolloutRs), emptyAsNull(threshold), false, "ppo_clip")
                .resolve();
    }

    private static @Nullable String emptyAsNull(String text) {
        return text.isEmpty() ? null : text;
    }
}
