package dev.millrace.api.environment;

import java.util.Objects;

/**
 * What an environment does after a token of the policy: nothing, say something, end the episode, both of these, or keep
 * the policy waiting.
 *
 * @param tokens what it says, inserted after the policy's token with mask 0 and never trained on; owned by the
 *     result from here on, so hand over an array that nobody writes to any more
 * @param ends true if the response is over after these tokens
 * @param later true if the environment is not done yet, and is to be asked again about the same transcript; then it says
 *     nothing and ends nothing
 */
public record StepResult(int[] tokens, boolean ends, boolean later) {
    private static final int[] NOTHING = {};

    /** The policy continues. */
    public static final StepResult GO_ON = new StepResult(NOTHING, false, false);

    /** The response is over. */
    public static final StepResult END = new StepResult(NOTHING, true, false);

    /** The environment needs time, for a tool or a test it runs: this sequence waits, the others go on. */
    public static final StepResult LATER = new StepResult(NOTHING, false, true);

    public StepResult {
        Objects.requireNonNull(tokens, "tokens");
        if (later && (ends || tokens.length > 0)) {
            throw new IllegalArgumentException("a result that comes later neither ends nor says anything yet: ends="
                    + ends + ", " + tokens.length + " tokens");
        }
    }

    /** The environment says something and the policy continues. */
    public static StepResult insert(int... tokens) {
        return new StepResult(tokens, false, false);
    }

    /** The environment has the last word. */
    public static StepResult insertAndEnd(int... tokens) {
        return new StepResult(tokens, true, false);
    }
}
