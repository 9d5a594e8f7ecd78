package dev.millrace.corrections.stage;

import dev.millrace.corrections.ratio.RatioKind;
import java.util.OptionalDouble;

/**
 * The stage that makes importance weights: {@link StageBatch#weigh}. Weights multiply a token's loss and are not
 * differentiated.
 */
public interface WeightStage extends Stage {

    /**
     * Returns the same stage for another pair of policies; the objective determines the gap that weights have to
     * correct.
     */
    WeightStage comparing(RatioKind ratio);

    /** The bound at which a weight is truncated; empty where none is. */
    default OptionalDouble cap() {
        return OptionalDouble.empty();
    }
}
