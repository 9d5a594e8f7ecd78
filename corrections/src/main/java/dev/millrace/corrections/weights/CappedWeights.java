package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;

/** A stage that is its own method. */
interface CappedWeights extends RatioWeights, WeightMethod {

    @Override
    default CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    @Override
    default WeightMethod method() {
        return this;
    }
}
