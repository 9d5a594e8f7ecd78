package dev.millrace.replay.retrain;

/**
 * Log-probs to recompute.
 *
 * @param own the old ones, under each token's sampling version
 */
public record Rescoring(boolean own, Proximal proximal) {

    /** Version of recomputed proximal log-probs. */
    public sealed interface Proximal {
        /** Keep the recorded ones. */
        record Kept() implements Proximal {}

        /** The recorded version, which proves the record. */
        record Recorded() implements Proximal {}

        /** The version at step start, from which staleness then counts. */
        record AtStep() implements Proximal {}

        /** One version for all. */
        record Fixed(long version) implements Proximal {
            public Fixed {
                if (version < 0) {
                    throw new IllegalArgumentException("a version is at least 0: " + version);
                }
            }
        }
    }

    private static final String WORDS =
            "own (old log-probs under the versions that sampled) and one of recorded, at-step or a version's number"
                    + " (proximal log-probs under the version of the record, of the step's beginning, or that one), separated by a comma";

    /** Parses text such as {@code own,at-step}. */
    public static Rescoring parse(String text) {
        boolean own = false;
        Proximal proximal = null;
        for (String word : text.split(",", -1)) {
            if (word.equals("own") && !own) {
                own = true;
            } else if (proximal == null && !word.equals("own")) {
                proximal = proximal(word, text);
            } else {
                throw new IllegalArgumentException("'" + text + "' names a recomputation twice; expected " + WORDS);
            }
        }
        return new Rescoring(own, proximal == null ? new Proximal.Kept() : proximal);
    }

    private static Proximal proximal(String word, String text) {
        if (word.equals("recorded")) {
            return new Proximal.Recorded();
        }
        if (word.equals("at-step")) {
            return new Proximal.AtStep();
        }
        if (!word.matches("\\d{1,18}")) {
            throw new IllegalArgumentException("'" + text + "' names no recomputation; expected " + WORDS);
        }
        return new Proximal.Fixed(Long.parseLong(word));
    }

    /** True if corrections are those at step start. */
    public boolean isAtStep() {
        return proximal instanceof Proximal.AtStep;
    }

    @Override
    public String toString() {
        String second = proximal instanceof Proximal.Fixed fixed
                ? "version " + fixed.version()
                : proximal instanceof Proximal.Recorded ? "recorded" : isAtStep() ? "at-step" : "";
        return !own ? second : second.isEmpty() ? "own" : "own," + second;
    }
}
