package dev.millrace.corrections.vcpo;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import dev.millrace.corrections.vcpo.OffPolicyOptimalBaseline.Scope;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * OPOB (VCPO): the baseline of least variance off policy, by the norm of each sequence's gradient and its importance weight,
 * proximal over behavior; see {@link OffPolicyOptimalBaseline}.
 *
 * <p>Only a learner knows the gradients. Where a batch is formed the advantages are those of the group's mean, and the report
 * says that they are decided at the step.
 *
 * <p>Unit: group, or batch. Source: arXiv 2602.17616.
 *
 * @param scope sequences that share a baseline
 * @param average kind of average
 * @param weights importance weights in the baseline
 * @param weightCap cap of these weights, at least 1; 0 for none
 * @param lengthNormalized divide a gradient's norm by the trained length
 * @param divideByStd divide by the standard deviation of rewards in scope
 */
public record Opob(
        Scope scope,
        WeightedAverage average,
        Weights weights,
        double weightCap,
        boolean lengthNormalized,
        boolean divideByStd)
        implements AdvantageEstimator {

    /** The importance weights in the baseline. */
    public enum Weights {
        /** As they are: what the baseline is optimal for. */
        RAW,
        /** Truncated, as an update's may be. */
        TRUNCATED,
        /** None: the on-policy baseline. */
        NONE
    }

    public Opob {
        Objects.requireNonNull(scope, "scope");
        Objects.requireNonNull(average, "average");
        Objects.requireNonNull(weights, "weights");
        if (weights == Weights.TRUNCATED && !(weightCap >= 1 && weightCap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "weight_cap must be finite and at least 1 for weights=truncated: " + weightCap);
        }
        if (weights != Weights.TRUNCATED && weightCap != 0) {
            throw new IllegalArgumentException(
                    "weight_cap does nothing unless weights=truncated; leave it at 0: " + weightCap);
        }
    }

    /** The weighted mean of each group, by raw weights. */
    public static Opob defaults() {
        return new Opob(Scope.GROUP, WeightedAverage.MEAN, Weights.RAW, 0, false, false);
    }

    @Override
    public CorrectionUnit unit() {
        return scope == Scope.GROUP ? CorrectionUnit.GROUP : CorrectionUnit.BATCH;
    }

    @Override
    public Set<StageInput> inputs() {
        return weights == Weights.NONE ? Set.of() : StageFacts.policies(RatioKind.ANCHOR);
    }

    @Override
    public Set<StageInput> optionalInputs() {
        return Set.of(StageInput.GRADIENT_NORMS);
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        Map<String, Double> values = StageSettings.of(this);
        boolean decided = batch.facts().has(StageInput.GRADIENT_NORMS);
        values.put("decided_at_step", decided ? 0.0 : 1.0);
        double[] advantages = new Grpo(false).perSequence(tokens, batch.rewards());
        if (decided) {
            double[] ofGroups = advantages.clone();
            double[] norms = batch.facts().gradientNorms();
            double[] baselines = new OffPolicyOptimalBaseline(scope, average, lengthNormalized, divideByStd)
                    .compute(tokens, batch.rewards(), norms, logWeights(batch), advantages);
            report(tokens, norms, ofGroups, advantages, values);
            Arrays.stream(baselines).average().ifPresent(mean -> values.put("baseline_mean", mean));
        }
        return batch.advantage(this, advantages, values);
    }

    private static void report(
            TokenBatch tokens, double[] norms, double[] ofGroups, double[] advantages, Map<String, Double> values) {
        double sum = 0;
        double largest = 0;
        double moved = 0;
        int trained = 0;
        for (int s = 0; s < norms.length; s++) {
            if (tokens.trainedTokens(s) > 0) {
                sum += norms[s];
                largest = Math.max(largest, norms[s]);
                moved += Math.abs(advantages[s] - ofGroups[s]);
                trained++;
            }
        }
        if (trained > 0) {
            values.put("norm_mean", sum / trained);
            values.put("norm_max", largest);
            values.put("moved_mean", moved / trained);
        }
    }

    /** One per sequence; 0, which is the weight 1, without a trained token. */
    private double[] logWeights(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        double[] logWeights = new double[tokens.sequenceCount()];
        if (weights == Weights.NONE) {
            return logWeights;
        }
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        double cap = weights == Weights.TRUNCATED ? Math.log(weightCap) : Double.POSITIVE_INFINITY;
        double[] raw = SequenceLogWeights.ofTrainedSequences(tokens, ratio);
        int next = 0;
        for (int s = 0; s < logWeights.length; s++) {
            if (tokens.trainedTokens(s) > 0) {
                logWeights[s] = Math.min(raw[next++], cap);
            }
        }
        return logWeights;
    }
}
