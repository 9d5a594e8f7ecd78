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
     * What it is called in reports, unique in an algorithm: {@code m2po}. Its kind, unless it says otherwise.
     */
    default String name() {
        return StageSettings.kindOf(getClass());
    }

    /** What receives one verdict, weight or advantage as a whole. */
    CorrectionUnit unit();

    /** What it reads of a batch beside its layout and rewards; where one of them is missing, the stage is refused. */
    default Set<StageInput> inputs() {
        return Set.of();
    }

    /**
     * What it reads if the batch has it, and does without if not, which it reports. Whoever can make it ready should.
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
