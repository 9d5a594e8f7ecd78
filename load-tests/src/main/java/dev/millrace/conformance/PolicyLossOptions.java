package dev.millrace.conformance;

import dev.millrace.corrections.objective.ClipCov;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.KlCov;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;

/**
 * The options of {@code policy_loss} with verl's defaults; an option of another loss mode is known and not looked at.
 */
final class PolicyLossOptions {
    private final CaseConfig config;
    private final String aggregationMode;
    private final GlobalBatch whole;
    private final double lengthTokens;

    private PolicyLossOptions(CaseConfig config) {
        this.config = config;
        this.aggregationMode = config.text("loss_agg_mode", "token-mean");
        CaseConfig global = config.has("global_batch_info") ? config.section("global_batch_info") : CaseConfig.empty();
        this.whole = new GlobalBatch(
                global.integer("batch_num_tokens", (int) GlobalBatch.OF_THIS_BATCH),
                global.integer("global_batch_size", (int) GlobalBatch.OF_THIS_BATCH),
                global.integer("dp_size", 1));
        this.lengthTokens = global.number("loss_scale_factor", Double.NaN);
    }

    static PolicyLossOptions read(CaseConfig config) {
        config.ignore(
                "clip_ratio",
                "clip_ratio_low",
                "clip_ratio_high",
                "clip_ratio_c",
                "with_rollout_is_weights",
                "tau_pos",
                "tau_neg",
                "dro_beta",
                "kl_cov_ratio",
                "ppo_kl_coef",
                "clip_cov_ratio",
                "clip_cov_lb",
                "clip_cov_ub",
                "rollout_correction");
        return new PolicyLossOptions(config);
    }

    String lossMode() {
        return config.text("loss_mode", "vanilla");
    }

    boolean isBypass() {
        return lossMode().equals("bypass_mode");
    }

    RolloutCorrectionConfig rolloutCorrection() {
        if (!config.has("rollout_correction")) {
            throw new IllegalArgumentException("bypass_mode needs the options rollout_correction");
        }
        return CaseRolloutOptions.read(config.section("rollout_correction"), true);
    }

    boolean weighted() {
        return config.flag("with_rollout_is_weights", false);
    }

    GlobalBatch whole() {
        return whole;
    }

    LossAggregation aggregation(int paddedLength) {
        return switch (aggregationMode) {
            case "token-mean" -> new LossAggregation.TokenMean();
            case "token-sum" -> new LossAggregation.TokenSum();
            case "seq-mean-token-sum" -> new LossAggregation.SeqMeanTokenSum();
            case "seq-mean-token-sum-norm" ->
                new LossAggregation.SeqMeanTokenSumNorm(Double.isNaN(lengthTokens) ? paddedLength : lengthTokens);
            case "seq-mean-token-mean" -> new LossAggregation.SeqMeanTokenMean();
            default -> throw new IllegalArgumentException("unknown loss_agg_mode: " + aggregationMode);
        };
    }

    /**
     * The loss the reference reports when no token is trained: 0 divided by the count of the whole if that is given,
     * by 0 otherwise.
     */
    double lossOfNothing() {
        boolean sequences = switch (lossMode()) {
            case "gspo", "sapo" -> true;
            default -> aggregationMode.startsWith("seq-");
        };
        if (lossMode().equals("geo_mean") || !sequences && aggregationMode.equals("token-sum")) {
            return 0.0;
        }
        long count = sequences ? whole.sequences() : whole.tokens();
        if (count == GlobalBatch.OF_THIS_BATCH && whole.shards() > 1) {
            throw new IllegalArgumentException("the counts of the whole batch are required when dp_size > 1");
        }
        return count == GlobalBatch.OF_THIS_BATCH ? Double.NaN : 0.0;
    }

    double clipRatioLow() {
        return config.number("clip_ratio_low", config.number("clip_ratio", 0.2));
    }

    double clipRatioHigh() {
        return config.number("clip_ratio_high", config.number("clip_ratio", 0.2));
    }

    double clipRatioC(double ifNotGiven) {
        return config.number("clip_ratio_c", ifNotGiven);
    }

    double tauPositive() {
        return config.number("tau_pos", 1.0);
    }

    double tauNegative() {
        return config.number("tau_neg", 1.05);
    }

    /** The only option without a default: the leash is what the objective is. */
    double droBeta() {
        if (!config.has("dro_beta")) {
            throw new IllegalArgumentException("loss_mode dro needs dro_beta");
        }
        return config.number("dro_beta");
    }

    double klCovShare() {
        return config.number("kl_cov_ratio", KlCov.DEFAULT_SHARE);
    }

    double klCovPenalty() {
        return config.number("ppo_kl_coef", KlCov.DEFAULT_PENALTY);
    }

    double clipCovShare() {
        return config.number("clip_cov_ratio", ClipCov.DEFAULT_SHARE);
    }

    double clipCovLow() {
        return config.number("clip_cov_lb", ClipCov.DEFAULT_LOW);
    }

    double clipCovHigh() {
        return config.number("clip_cov_ub", ClipCov.DEFAULT_HIGH);
    }
}
