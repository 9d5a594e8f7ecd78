package dev.millrace.corrections.objective;

/**
 * Counts what an objective acted on: clipped, gated, held back, masked or rejected. A ratio alone is not counted, so
 * the plain policy gradient acts on nothing.
 */
public record ActedOn(int tokens, int sequences) {
    public ActedOn {
        if (tokens < sequences || sequences < 0) {
            throw new IllegalArgumentException(
                    "a sequence acted on has a token acted on: tokens=" + tokens + ", sequences=" + sequences);
        }
    }

    /** Counts sequence after sequence. */
    static final class Tally {
        private int tokens;
        private int sequences;
        private int last = -1;

        /** Sequences come in ascending order, each any number of times. */
        void add(int sequence, int tokensActedOn) {
            tokens += tokensActedOn;
            if (tokensActedOn > 0 && sequence != last) {
                sequences++;
                last = sequence;
            }
        }

        ActedOn done() {
            return new ActedOn(tokens, sequences);
        }
    }
}
