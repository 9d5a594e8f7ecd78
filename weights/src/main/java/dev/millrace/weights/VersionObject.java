package dev.millrace.weights;

import dev.millrace.schemas.run.RunIdentity;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Name of the object that holds one part of a version: {@code <run>/<epoch>/<policy>/<version>-<part>-<sha256>}.
 *
 * <p>With the content hash, a step repeated after a crash finds its object, and a different step does not overwrite it.
 *
 * @param sha256  of the content; with a suffix for an unfinished object
 */
public record VersionObject(long version, Part part, String sha256) {
    private static final Pattern LAST = Pattern.compile(".*/(\\d{1,18})-(weights|optimizer)-([^/]+)");

    /** The parts of a version that are stored as objects. */
    public enum Part {
        /** The weights, whole or deltas. */
        WEIGHTS("weights"),
        /** The optimizer's state. */
        OPTIMIZER("optimizer");

        private final String text;

        Part(String text) {
            this.text = text;
        }
    }

    /** Common prefix of all objects of a run's policy. */
    public static String prefix(RunIdentity run) {
        return run.runId() + "/" + run.epoch() + "/" + run.policyId();
    }

    public String name(RunIdentity run) {
        return String.format("%s/%09d-%s-%s", prefix(run), version, part.text, sha256);
    }

    /** Parses a name; empty if it is not an object name. */
    public static Optional<VersionObject> parse(String name) {
        Matcher matcher = LAST.matcher(name);
        return matcher.matches()
                ? Optional.of(new VersionObject(
                        Long.parseLong(matcher.group(1)),
                        matcher.group(2).equals(Part.WEIGHTS.text) ? Part.WEIGHTS : Part.OPTIMIZER,
                        matcher.group(3)))
                : Optional.empty();
    }
}
