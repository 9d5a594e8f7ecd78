package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Whether an answer is about the question: it may say so by {@code id} or {@code rollout_id}, and must where nothing else does. */
final class AnswerIdentity {
    private AnswerIdentity() {}

    /**
     * Refuses the answer to another question.
     *
     * @param isNeeded whether one of the two must be there
     * @throws PartnerException with both names
     */
    static void check(ObjectNode answer, ObjectNode question, String who, boolean isNeeded) {
        boolean namesId = isSame("id", answer, question, who);
        boolean namesRollout = isSame("rollout_id", answer, question, who);
        if (isNeeded && !namesId && !namesRollout) {
            throw new PartnerException(
                    who + " answered without the question's id, so it may have answered another one; put \"id\": "
                            + question.path("id") + " into the answer");
        }
    }

    private static boolean isSame(String key, ObjectNode answer, ObjectNode question, String who) {
        JsonNode said = answer.path(key);
        if (!PartnerJson.isThere(said)) {
            return false;
        }
        if (!said.equals(question.path(key))) {
            throw new PartnerException(
                    who + " answered another question: " + key + " is " + said + ", asked was " + question.path(key));
        }
        return true;
    }
}
