package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.jspecify.annotations.Nullable;

/**
 * A question to a partner.
 *
 * @param id the same whenever it is asked again; no other question has it
 * @param body with the id; not to be written any more
 * @param episode that it belongs to, whose questions go to one process and one connection; null where anybody may answer
 * @param begins whether it is the episode's first
 * @param ends whether it is the last, whose answer does not matter
 */
record Question(String id, ObjectNode body, @Nullable String episode, boolean begins, boolean ends) {

    /** Of no episode. */
    static Question single(String id, ObjectNode body) {
        return new Question(id, body, null, false, false);
    }
}
