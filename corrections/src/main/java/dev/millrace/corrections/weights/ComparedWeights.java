package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.WeightStage;
import java.util.HashSet;
import java.util.OptionalDouble;
import java.util.Set;

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
