package dev.millrace.api.environment;

import java.util.Objects;

/**
 * Reaction of an environment to a token of the policy: nothing, text, the end of the episode, text and end, or a wait.
 *
 * @param tokens text to insert after the policy's token, with mask 0 and never trained on; owned by the result, so do
 * not write the array afterwards
 * @param ends true if the response is over after these tokens
 * @param later true if the environment needs more time and is called again with the same transcript; then without
 * tokens and end
 */
public record StepResult(int[] tokens, boolean ends, boolean later) {
    private static final int[] NOTHING = {};

    /** The policy continues. */
    public static final StepResult GO_ON = new StepResult(NOTHING, false, false);

    /** The response is over. */
    public static final StepResult END = new StepResult(NOTHING, true, false);

    /** The environment needs time, for a tool or a test it runs: this sequence waits while the others continue. */
    public static final StepResult LATER = new StepResult(NOTHING, false, true);

    public StepResult {
        Objects.requireNonNull(tokens, "tokens");
        if (later && (ends || tokens.length > 0)) {
            throw new IllegalArgumentException("a result that comes later neither ends nor says anything yet: ends="
                    + ends + ", " + tokens.length + " tokens");
        }
    }

    /** Inserts text; the policy continues. */
    public static StepResult insert(int... tokens) {
        return new StepResult(tokens, false, false);
    }

    /** Inserts text and ends the response. */
    public static StepResult insertAndEnd(int... tokens) {
        return new StepResult(tokens, true, false);
    }
}
