package dev.millrace.corrections.stage;

import dev.millrace.corrections.CorrectionUnit;
import java.util.Set;

/**
 * One decision over a batch: it reads the batch's facts and what the stages before it left, changes one thing, and says on
 * how much it acted.
 *
 * <p>An implementation is a record. Its components are its settings, refused in the constructor with a sentence where they
 * are wrong, and the same settings on the same facts decide the same, bit for bit: no clock, no random number that is not
 * seeded by the facts. Immutable and thread-safe.
 */
public interface Stage {

    /**
     * Returns the stage's name in reports, unique in an algorithm, such as {@code m2po}; by default its kind.
     */
    default String name() {
        return StageSettings.kindOf(getClass());
    }

    /** What receives one verdict, weight or advantage as a whole. */
    CorrectionUnit unit();

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
     * Decides, and reports.
     *
     * @throws AbsentInputException naming what the batch lacks
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming sequence and token of a value that is no number
     */
    StageOutcome apply(StageBatch batch);
}
