package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/** An objective whose ratio is the sequence's, and whose source takes a mean over sequences. */
interface SequenceObjective extends Objective {

    @Override
    default CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    default LossAggregation publishedAggregation() {
        return new LossAggregation.SeqMeanTokenMean();
    }
}
