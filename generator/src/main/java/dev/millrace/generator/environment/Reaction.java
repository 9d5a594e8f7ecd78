package dev.millrace.generator.environment;

import java.util.Objects;

/**
 * What an environment does after a token of the policy: nothing, say something, end the episode, or both of these.
 *
 * @param tokens what it says, inserted after the policy's token with mask 0 and never trained on; owned by the
 *     reaction from here on, so hand over an array that nobody writes to any more
 * @param ends true if the response is over after these tokens
 */
public record Reaction(int[] tokens, boolean ends) {
    private static final int[] NOTHING = {};

    /** The policy goes on. */
    public static final Reaction GO_ON = new Reaction(NOTHING, false);

    /** The response is over. */
    public static final Reaction END = new Reaction(NOTHING, true);

    public Reaction {
        Objects.requireNonNull(tokens, "tokens");
    }

    /** The environment says something and the policy goes on. */
    public static Reaction say(int... tokens) {
        return new Reaction(tokens, false);
    }

    /** The environment has the last word. */
    public static Reaction sayAndEnd(int... tokens) {
        return new Reaction(tokens, true);
    }
}
