package dev.millrace.corrections.stage;

import dev.millrace.corrections.ratio.RatioKind;
import java.util.OptionalDouble;

/**
 * The stage that makes importance weights: {@link StageBatch#weigh}. Weights multiply a token's loss and are not
 * differentiated.
 */
public interface WeightStage extends Stage {

    /** The same over another pair of policies: what is left for weights to correct follows from the objective. */
    WeightStage comparing(RatioKind ratio);

    /** The bound at which a weight is truncated; empty where none is. */
    OptionalDouble cap();
}
