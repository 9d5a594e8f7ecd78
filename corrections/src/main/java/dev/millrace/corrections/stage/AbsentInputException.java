package dev.millrace.corrections.stage;

/** A stage reads something that the batch does not have. */
public final class AbsentInputException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    public AbsentInputException(StageInput input) {
        super("the batch has no " + input.text() + ", which a stage of the algorithm reads");
    }
}
