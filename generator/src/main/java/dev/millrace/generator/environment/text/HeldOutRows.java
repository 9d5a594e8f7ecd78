package dev.millrace.generator.environment.text;

import dev.millrace.api.dataset.DatasetSettings;
import java.util.Objects;

/**
 * Which rows are never trained on, so that a policy can be evaluated by them: those of data of their own, or a share of the task's data.
 *
 * @param data with the held-out prompts; without a file there is none
 * @param share of the task's data that is held out, at least 0 and below 1; 0 holds out none
 * @param seed by which that share is drawn; the same for every run that is to be compared
 */
public record HeldOutRows(DatasetSettings data, double share, long seed) {

    public HeldOutRows {
        Objects.requireNonNull(data, "data");
        if (!(share >= 0 && share < 1)) {
            throw new IllegalArgumentException("share must be at least 0 and below 1: " + share);
        }
        if (share > 0 && isGiven(data)) {
            throw new IllegalArgumentException(
                    "share is " + share
                            + " and data names held-out prompts of their own; give one of the two, the other stays 0 or without a file");
        }
    }

    /** None. */
    public static HeldOutRows defaults() {
        return new HeldOutRows(JsonLines.defaults(), 0, 0);
    }

    private static boolean isGiven(DatasetSettings data) {
        return !data.equals(JsonLines.defaults());
    }

    /** Whether they are data of their own. */
    boolean isOwnData() {
        return isGiven(data);
    }

    /**
     * How many of so many rows are held out.
     *
     * @throws IllegalArgumentException if none would be left
     */
    int of(int rows) {
        if (share == 0) {
            return 0;
        }
        int held = (int) Math.max(1, Math.round(share * rows));
        if (held >= rows) {
            throw new IllegalArgumentException("share of " + share + " holds out " + held + " of " + rows
                    + " rows, and none is left to train on; give more rows, or a smaller share");
        }
        return held;
    }
}
