package dev.millrace.corrections.stage;

import dev.millrace.corrections.CorrectionUnit;
import java.util.Set;

/**
 * One decision over a batch: reads the batch's facts and the result of earlier stages, changes one thing, and reports how many
 * tokens it changed.
 *
 * <p>An implementation is a record whose components are its settings, validated in the constructor. The same settings and
 * facts give the same bits: no clock, and random numbers only if seeded by the facts. Immutable and thread-safe. {@code
 * dev.millrace.stages.AlgorithmParts} lists the built-in ones.
 */
public interface Stage {

    /**
     * Returns the stage's name in reports, unique in an algorithm, such as {@code m2po}; by default its kind.
     */
    default String name() {
        return StageSettings.kindOf(getClass());
    }

    /** The unit that receives one verdict, weight or advantage as a whole; by default the token. */
    default CorrectionUnit unit() {
        return CorrectionUnit.TOKEN;
    }

    /**
     * Returns what the stage reads of a batch in addition to its layout and rewards; if one of them is missing, the
     * stage is refused.
     */
    default Set<StageInput> inputs() {
        return Set.of();
    }

    /**
     * Returns optional inputs: the stage reads them if the batch has them, and otherwise works without and reports
     * that. Callers that can provide them should.
     */
    default Set<StageInput> optionalInputs() {
        return Set.of();
    }

    /**
     * Decides about the batch, and reports.
     *
     * @throws AbsentInputException naming the missing input
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming sequence and token of a non-finite value
     */
    StageOutcome apply(StageBatch batch);
}
