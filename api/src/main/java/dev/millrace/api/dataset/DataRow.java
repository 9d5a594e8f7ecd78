package dev.millrace.api.dataset;

import java.util.Objects;

/**
 * One row of data.
 *
 * @param prompt text of the prompt, not empty
 * @param state everything else that the row says, as a JSON object such as {@code {"answer":"42"}}; it travels with the prompt, and
 *     rewards read it
 */
public record DataRow(String prompt, String state) {

    public DataRow {
        Objects.requireNonNull(state, "state");
        if (prompt.isEmpty()) {
            throw new IllegalArgumentException("a prompt needs at least one character");
        }
    }
}
