package dev.millrace.topology.correction;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.advantage.TokenAdvantages;
import dev.millrace.corrections.m2po.SecondMoment;
import dev.millrace.corrections.m2po.SecondMomentMask;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.StalenessLimit;
import dev.millrace.corrections.staleness.StalenessSummary;
import dev.millrace.corrections.vcpo.EffectiveSampleSize;
import dev.millrace.corrections.vcpo.SequenceLogWeights;
import dev.millrace.schemas.StageReport;
import dev.millrace.topology.correction.ImportanceWeighting.PolicyLogProbs;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The corrections that are facts about a batch, in their order: group advantages, staleness limit, second-moment
 * mask, effective sample size and step scale. Each reports; the mathematics is the corrections' own.
 *
 * <p>Advantages are taken over whole groups before anything is masked: a masked sibling still is a baseline.
 * Immutable and thread-safe.
 */
public final class BatchCorrections {
    /** Stage name of a sequence whose own rollout leaves nothing to train on. */
    public static final String OWN_MASK = "rollout";

    private final CorrectionConfig config;
    private final Grpo advantage;

    public BatchCorrections(CorrectionConfig config) {
        this.config = config;
        this.advantage = config.advantage().divideByStd() ? Grpo.withStandardDeviation() : Grpo.withoutStandardDeviation();
    }

    /**
     * A batch as it comes in.
     *
     * @param tokens layout, the trajectories' own masks, groups
     * @param logProbs one per packed token
     * @param rewards one per sequence
     * @param versions which version sampled which tokens
     * @param currentVersion what staleness is counted from; no token is newer
     */
    public record Input(TokenBatch tokens, PolicyLogProbs logProbs, double[] rewards, BatchVersions versions,
        long currentVersion) {
    }

    /**
     * What was decided.
     *
     * @param tokens the layout under the mask that is left
     * @param advantages one per sequence
     * @param maskedBy one per sequence: the stage that masked the last of its tokens; null where some are trained on
     * @param reports one per stage, in order
     */
    public record Verdict(TokenBatch tokens, double[] advantages, String[] maskedBy, List<StageReport> reports,
        double essRatio, double essRatioTruncated, double secondMoment, double stepScale, double stalenessMean,
        long stalenessMax) {
    }

    /**
     * Decides about a batch.
     *
     * @throws IllegalArgumentException if no token of it would be trained on
     */
    public Verdict decide(Input input) {
        List<StageReport> reports = new ArrayList<>();
        String[] maskedBy = new String[input.tokens().sequenceCount()];
        noteMasked(input.tokens(), maskedBy, OWN_MASK);

        double[] advantages = advantage.perSequence(input.tokens(), input.rewards());
        reports.add(reportAdvantages(input, advantages));

        byte[] mask = new byte[input.tokens().tokenCount()];
        StalenessSummary staleness =
            new StalenessLimit(config.staleness().maxVersions()).maskTokens(input.versions(), input.currentVersion(), mask);
        TokenBatch fresh = input.tokens().withMask(mask);
        noteMasked(fresh, maskedBy, "staleness");
        reports.add(reportStaleness(input, fresh, staleness));

        TokenBatch kept = fresh;
        double secondMoment = secondMomentOf(fresh, input);
        if (config.m2po().enabled()) {
            SecondMoment moment = applyM2po(fresh, input, advantages, mask);
            kept = fresh.withMask(mask);
            noteMasked(kept, maskedBy, "m2po");
            reports.add(reportM2po(fresh, kept, moment));
        }

        double[] logWeights = SequenceLogWeights.ofTrainedSequences(kept, input.logProbs().ratio(config.weights().ratio()));
        double ess = EffectiveSampleSize.ofRaw(logWeights).ratio();
        double essTruncated = EffectiveSampleSize.ofTruncated(logWeights, config.weights().cap()).ratio();
        double scale = config.ess().scale(ess);
        reports.add(reportEss(kept, ess, essTruncated, scale));
        return new Verdict(kept, advantages, maskedBy, List.copyOf(reports), ess, essTruncated, secondMoment, scale,
            staleness.mean(), staleness.oldest());
    }

    private SecondMoment applyM2po(TokenBatch batch, Input input, double[] advantages, byte[] mask) {
        SecondMomentMask m2po = new SecondMomentMask(config.m2po().threshold());
        return config.m2po().harmfulOnly()
            ? m2po.computeHarmful(batch, input.logProbs().ratio(WeightsConfig.Ratio.ANCHOR),
                TokenAdvantages.spread(batch, advantages), mask)
            : m2po.compute(batch, input.logProbs().ratio(WeightsConfig.Ratio.ANCHOR), mask);
    }

    /** Over all trained tokens, whatever the mask goes by. */
    private double secondMomentOf(TokenBatch batch, Input input) {
        return new SecondMomentMask(config.m2po().threshold())
            .compute(batch, input.logProbs().ratio(WeightsConfig.Ratio.ANCHOR), new byte[batch.tokenCount()]).before();
    }

    private StageReport reportAdvantages(Input input, double[] advantages) {
        Map<String, Double> values = new TreeMap<>();
        double sum = 0;
        int zero = 0;
        for (double value : advantages) {
            sum += Math.abs(value);
            zero += value == 0.0 ? 1 : 0;
        }
        values.put("groups", (double) input.tokens().groupCount());
        values.put("mean_absolute", sum / advantages.length);
        values.put("zero_sequences", (double) zero);
        values.put("divide_by_std", config.advantage().divideByStd() ? 1.0 : 0.0);
        return new StageReport("grpo", (long) input.tokens().trainedTokens(), 0L, sequences(input.tokens()), 0L, values);
    }

    private StageReport reportStaleness(Input input, TokenBatch fresh, StalenessSummary summary) {
        Map<String, Double> values = new TreeMap<>();
        values.put("max_versions", (double) config.staleness().maxVersions());
        values.put("current_version", (double) input.currentVersion());
        values.put("mean", summary.mean());
        values.put("oldest", (double) summary.oldest());
        return masking("staleness", input.tokens(), fresh, values);
    }

    private StageReport reportM2po(TokenBatch before, TokenBatch after, SecondMoment moment) {
        Map<String, Double> values = new TreeMap<>();
        values.put("threshold", config.m2po().threshold());
        values.put("harmful_only", config.m2po().harmfulOnly() ? 1.0 : 0.0);
        values.put("candidates", (double) moment.candidates());
        values.put("second_moment_before", moment.before());
        values.put("second_moment_after", moment.after());
        values.put("within_threshold", moment.withinThreshold() ? 1.0 : 0.0);
        return masking("m2po", before, after, values);
    }

    private StageReport reportEss(TokenBatch batch, double ess, double essTruncated, double scale) {
        Map<String, Double> values = new TreeMap<>();
        values.put("ess_ratio", ess);
        values.put("ess_ratio_truncated", essTruncated);
        values.put("base_ratio", config.ess().baseRatio());
        values.put("step_scale", scale);
        return new StageReport("ess", (long) batch.trainedTokens(), 0L, sequences(batch), 0L, values);
    }

    private static StageReport masking(String stage, TokenBatch before, TokenBatch after, Map<String, Double> values) {
        long changed = 0;
        for (int s = 0; s < before.sequenceCount(); s++) {
            changed += before.trainedTokens(s) != after.trainedTokens(s) ? 1 : 0;
        }
        return new StageReport(stage, (long) before.trainedTokens(), (long) before.trainedTokens() - after.trainedTokens(),
            sequences(before), changed, values);
    }

    private static long sequences(TokenBatch batch) {
        long trained = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            trained += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        return trained;
    }

    private static void noteMasked(TokenBatch batch, String[] maskedBy, String stage) {
        for (int s = 0; s < maskedBy.length; s++) {
            if (maskedBy[s] == null && batch.trainedTokens(s) == 0) {
                maskedBy[s] = stage;
            }
        }
    }
}
