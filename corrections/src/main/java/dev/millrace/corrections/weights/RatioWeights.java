package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import dev.millrace.corrections.stage.WeightStage;
import java.util.HashSet;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeMap;

/**
 * A stage whose weights follow from the log ratios of two policies: a {@link WeightMethod}, proximal over behavior unless it is
 * told to compare others.
 */
public interface RatioWeights extends WeightStage {

    /** How log ratios become weights, before any normalisation. */
    WeightMethod method();

    /** Returns whether the weights are divided by their mean over the batch, see {@link BatchNormalizedWeights}. */
    boolean batchNormalize();

    /** Returns whether acting is bounding a weight; else a method acts on every token whose ratio is not 1. */
    default boolean bounds() {
        return true;
    }

    /** The log ratios that are weighed. */
    default LogRatio ratio(StageFacts facts, RatioKind kind) {
        return facts.ratio(kind);
    }

    /** What else is worth reporting of a batch that has a trained token. */
    default Map<String, Double> measures(TokenBatch batch, LogRatio ratio) {
        return Map.of();
    }

    /**
     * Overwrites {@code weights} by the {@link #method}, and adds the {@link #measures} of a batch that has a trained token.
     * Overridden where one pass over the tokens does for both.
     */
    default WeightSummary weighAndMeasure(
            TokenBatch batch, LogRatio ratio, float[] weights, Map<String, Double> measures) {
        WeightSummary summary = method().compute(batch, ratio, weights);
        if (batch.trainedTokens() > 0) {
            measures.putAll(measures(batch, ratio));
        }
        return summary;
    }

    @Override
    default Set<StageInput> inputs() {
        return StageFacts.policies(RatioKind.ANCHOR);
    }

    @Override
    default WeightStage comparing(RatioKind ratio) {
        return ratio == RatioKind.ANCHOR ? this : new ComparedWeights(this, ratio);
    }

    @Override
    default StageOutcome apply(StageBatch batch) {
        return weigh(this, batch, RatioKind.ANCHOR);
    }

    /** Weighs, as a stage that stands for this one. */
    default StageOutcome weigh(WeightStage by, StageBatch batch, RatioKind kind) {
        TokenBatch left = batch.left();
        LogRatio ratio = ratio(batch.facts(), kind);
        float[] perToken = new float[left.tokenCount()];
        Map<String, Double> measures = new TreeMap<>();
        WeightSummary raw = weighAndMeasure(left, ratio, perToken, measures);
        WeightSummary summary = batchNormalize() ? BatchNormalizedWeights.normalise(left, unit(), raw, perToken) : raw;
        Map<String, Double> values = new TreeMap<>(StageSettings.of(this));
        if (left.trainedTokens() > 0) {
            values.put("mean_weight", summary.weight().mean());
            values.put("min_weight", summary.weight().min());
            values.put("max_weight", summary.weight().max());
            if (batchNormalize() && summary.weight().mean() > 0) {
                values.put(
                        "batch_norm_factor",
                        raw.weight().mean() / summary.weight().mean());
            }
            values.putAll(measures);
        }
        if (!bounds()) {
            return weighOthers(by, batch, ratio, perToken, values);
        }
        return batch.weigh(
                by,
                perToken,
                (long) summary.truncatedTokens() + summary.maskedTokens(),
                summary.changedSequences(),
                values);
    }

    private static StageOutcome weighOthers(
            WeightStage by, StageBatch batch, LogRatio ratio, float[] perToken, Map<String, Double> values) {
        long tokens = 0;
        long sequences = 0;
        for (int s = 0; s < batch.left().sequenceCount(); s++) {
            long before = tokens;
            for (int t = batch.left().start(s); t < batch.left().end(s); t++) {
                tokens += batch.left().isTrained(t) && ratio.at(t) != 0 ? 1 : 0;
            }
            sequences += tokens > before ? 1 : 0;
        }
        return batch.weigh(by, perToken, tokens, sequences, values);
    }

    /** Weights of other policies than proximal over behavior: what they compare is the algorithm's to say, and no setting. */
    record ComparedWeights(RatioWeights weights, RatioKind ratio) implements WeightStage {
        @Override
        public String name() {
            return weights.name();
        }

        @Override
        public CorrectionUnit unit() {
            return weights.unit();
        }

        @Override
        public Set<StageInput> inputs() {
            Set<StageInput> inputs = new HashSet<>(weights.inputs());
            inputs.removeAll(StageFacts.policies(RatioKind.ANCHOR));
            inputs.addAll(StageFacts.policies(ratio));
            return Set.copyOf(inputs);
        }

        @Override
        public WeightStage comparing(RatioKind other) {
            return weights.comparing(other);
        }

        @Override
        public OptionalDouble cap() {
            return weights.cap();
        }

        @Override
        public StageOutcome apply(StageBatch batch) {
            return weights.weigh(this, batch, ratio);
        }
    }
}
