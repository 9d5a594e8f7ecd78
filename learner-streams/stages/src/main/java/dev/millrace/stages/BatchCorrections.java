package dev.millrace.stages;

import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.m2po.SecondMoment;
import dev.millrace.corrections.m2po.SecondMomentMask;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import dev.millrace.corrections.staleness.SequenceMask;
import dev.millrace.corrections.staleness.StalenessLimit;
import dev.millrace.corrections.staleness.StalenessSummary;
import dev.millrace.corrections.vcpo.EffectiveSampleSize;
import dev.millrace.corrections.vcpo.SequenceLogWeights;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/**
 * The corrections that are facts about a batch, in their order: group advantages, staleness, members without old log-probs,
 * rejection, off-policy sequence mask, second-moment mask, effective sample size and step scale. The mathematics is the
 * corrections' own.
 *
 * <p>Advantages are taken over whole groups before anything is masked: a masked sibling still is a baseline. A member without
 * old log-probs is then masked and in no statistic, or, where it is interpolated, in all of them: none compares old. The
 * stages after staleness see what the ones before have left; where nothing is left, the rest of them masks nothing, and
 * the step scale is that of nothing to be damped.
 *
 * <p>Immutable and thread-safe.
 */
public final class BatchCorrections {
    /** Stage name of a sequence whose own rollout leaves nothing to train on. */
    static final String OWN_MASK = "rollout";

    private final CorrectionConfig config;
    private final Grpo advantage;
    private final RolloutCorrection rolloutCorrection;
    private final double cap;

    public BatchCorrections(CorrectionConfig config) {
        this.config = config;
        this.advantage = config.advantage().estimator();
        this.rolloutCorrection =
                new RolloutCorrection(config.rolloutCorrection().resolve());
        this.cap = config.rolloutCorrection().weightCap();
    }

    /** Decides about a batch of at least one sequence. */
    public BatchVerdict decide(BatchInput input) {
        MaskLedger ledger = new MaskLedger(input.tokens(), OWN_MASK);
        double[] advantages = advantages(input, ledger);
        StalenessSummary staleness = limitVersions(input, ledger);
        if (config.staleness().maxAgeMs() > 0) {
            limitAge(input, ledger);
        }
        leaveOutWithoutOld(input, ledger);
        correctRollouts(input, ledger);
        if (config.sequenceMask().enabled()) {
            maskSequences(input, advantages, ledger);
        }
        // over all trained tokens, whatever the mask goes by
        double secondMoment = ledger.left().trainedTokens() == 0
                ? Double.NaN
                : SecondMomentMask.mean(ledger.left(), input.logProbs().ratio(ComparedPolicies.ANCHOR));
        if (config.m2po().enabled()) {
            maskMoments(input, advantages, ledger);
        }
        new StalenessDamping(config.staleness())
                .apply(
                        input.versions(),
                        ledger.left(),
                        input.currentVersion(),
                        new float[input.tokens().tokenCount()])
                .ifPresent(ledger::reported);
        EssRatios ess = sampleSize(input, ledger);
        return new BatchVerdict(
                ledger.left(),
                advantages,
                ledger.maskedBy(),
                ledger.reports(),
                ess.raw(),
                ess.truncated(),
                secondMoment,
                ess.stepScale(),
                staleness.mean(),
                staleness.oldest());
    }

    private double[] advantages(BatchInput input, MaskLedger ledger) {
        double[] advantages = advantage.perSequence(input.tokens(), input.rewards());
        Map<String, Double> values = new TreeMap<>();
        values.put("groups", (double) input.tokens().groupCount());
        values.put(
                "mean_absolute",
                Arrays.stream(advantages).map(Math::abs).average().orElse(0));
        values.put("zero_sequences", (double)
                Arrays.stream(advantages).filter(a -> a == 0.0).count());
        values.put("divide_by_std", config.advantage().divideByStd() ? 1.0 : 0.0);
        ledger.observed("grpo", values);
        return advantages;
    }

    private StalenessSummary limitVersions(BatchInput input, MaskLedger ledger) {
        byte[] mask = new byte[input.tokens().tokenCount()];
        StalenessSummary summary = new StalenessLimit(config.staleness().maxVersions())
                .maskTokens(input.versions(), input.currentVersion(), mask);
        double inQueue = inQueue(input);
        Map<String, Double> values = new TreeMap<>();
        values.put("max_versions", (double) config.staleness().maxVersions());
        values.put("current_version", (double) input.currentVersion());
        values.put("mean", summary.mean());
        values.put("oldest", (double) summary.oldest());
        values.put("in_queue_mean", inQueue);
        values.put("in_flight_mean", summary.mean() - inQueue);
        ledger.masked("staleness", mask, values);
        return summary;
    }

    /** Versions between scoring and assembly, mean over trained tokens; what is older than that was in flight. */
    private static double inQueue(BatchInput input) {
        double sum = 0;
        for (int s = 0; s < input.tokens().sequenceCount(); s++) {
            sum += (double) input.tokens().trainedTokens(s) * (input.currentVersion() - input.proximalVersions()[s]);
        }
        return input.tokens().trainedTokens() == 0 ? 0 : sum / input.tokens().trainedTokens();
    }

    private void limitAge(BatchInput input, MaskLedger ledger) {
        byte[] mask = ledger.left().mask();
        long oldest = 0;
        for (int s = 0; s < input.agesMs().length; s++) {
            oldest = Math.max(oldest, input.agesMs()[s]);
            if (input.agesMs()[s] > config.staleness().maxAgeMs()) {
                Arrays.fill(mask, input.tokens().start(s), input.tokens().end(s), (byte) 0);
            }
        }
        Map<String, Double> values = new TreeMap<>();
        values.put("max_age_ms", (double) config.staleness().maxAgeMs());
        values.put("oldest_ms", (double) oldest);
        ledger.masked("age", mask, values);
    }

    /** Reports where it is configured, and where there is something to report. */
    private void leaveOutWithoutOld(BatchInput input, MaskLedger ledger) {
        long sequences = 0;
        long tokens = 0;
        for (int s = 0; s < input.withoutOld().length; s++) {
            sequences += input.withoutOld()[s] ? 1 : 0;
            tokens += input.withoutOld()[s] ? input.tokens().trainedTokens(s) : 0;
        }
        if (sequences == 0 && !config.missingOldLogProbs().goesOn()) {
            return;
        }
        Map<String, Double> values = new TreeMap<>();
        values.put("sequences_without", (double) sequences);
        values.put("tokens_without", (double) tokens);
        ledger.masked(
                MissingOldLogProbs.STAGE,
                config.missingOldLogProbs()
                        .trainable(ledger.left(), input.withoutOld())
                        .mask(),
                values);
    }

    private void correctRollouts(BatchInput input, MaskLedger ledger) {
        if (ledger.left().trainedTokens() == 0) {
            ledger.masked("rollout_correction", ledger.left().mask(), new TreeMap<>());
            return;
        }
        RolloutCorrectionResult result = rolloutCorrection.apply(
                ledger.left(), input.logProbs().ratio(config.rolloutCorrection().compare()));
        ledger.masked("rollout_correction", result.mask(), new TreeMap<>(result.metrics()));
    }

    private void maskSequences(BatchInput input, double[] advantages, MaskLedger ledger) {
        byte[] mask = new byte[input.tokens().tokenCount()];
        SequenceMask.Summary summary = new SequenceMask(config.sequenceMask().threshold())
                .compute(ledger.left(), input.logProbs().ratio(ComparedPolicies.ANCHOR), advantages, mask);
        Map<String, Double> values = new TreeMap<>();
        values.put("threshold", config.sequenceMask().threshold());
        values.put("negative_sequences", (double) summary.negative());
        ledger.masked("sequence_mask", mask, values);
    }

    private void maskMoments(BatchInput input, double[] advantages, MaskLedger ledger) {
        byte[] mask = new byte[input.tokens().tokenCount()];
        SecondMomentMask m2po = new SecondMomentMask(config.m2po().threshold());
        SecondMoment moment = config.m2po().harmfulOnly()
                ? m2po.computeHarmful(ledger.left(), input.logProbs().ratio(ComparedPolicies.ANCHOR), advantages, mask)
                : m2po.compute(ledger.left(), input.logProbs().ratio(ComparedPolicies.ANCHOR), mask);
        Map<String, Double> values = new TreeMap<>();
        values.put("threshold", config.m2po().threshold());
        values.put("harmful_only", config.m2po().harmfulOnly() ? 1.0 : 0.0);
        values.put("candidates", (double) moment.candidates());
        values.put("second_moment_before", moment.before());
        values.put("second_moment_after", moment.after());
        values.put("within_threshold", moment.withinThreshold() ? 1.0 : 0.0);
        ledger.masked("m2po", mask, values);
    }

    private record EssRatios(double raw, double truncated, double stepScale) {
        /** Of a batch without a token: no sample has no size. */
        static final EssRatios STARVED = new EssRatios(Double.NaN, Double.NaN, 1);
    }

    private EssRatios sampleSize(BatchInput input, MaskLedger ledger) {
        double[] logWeights = SequenceLogWeights.ofTrainedSequences(
                ledger.left(), input.logProbs().ratio(config.rolloutCorrection().compare()));
        EssRatios ess = logWeights.length == 0 ? EssRatios.STARVED : essOf(logWeights);
        Map<String, Double> values = new TreeMap<>();
        if (logWeights.length > 0) {
            values.put("ess_ratio", ess.raw());
            values.put("ess_ratio_truncated", ess.truncated());
        }
        values.put("base_ratio", config.ess().baseRatio());
        values.put("step_scale", ess.stepScale());
        ledger.observed("ess", values);
        return ess;
    }

    private EssRatios essOf(double[] logWeights) {
        double raw = EffectiveSampleSize.ofRaw(logWeights).ratio();
        double truncated = EffectiveSampleSize.ofTruncated(logWeights, cap).ratio();
        return new EssRatios(raw, truncated, config.ess().scale(raw, truncated));
    }
}
