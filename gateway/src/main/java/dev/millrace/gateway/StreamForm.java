package dev.millrace.gateway;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** How a stream is written for a kind of client. One for each stream. */
interface StreamForm {
    /** What a piece of it is. */
    String of(ObjectNode piece);

    /** Its end, when the turns are on the log. */
    String end(List<PlayedTurn> turns);

    /** That it has none. */
    String failed(RefusedCallException refusal);

    /** As clients of the OpenAI API read it. */
    final class Chunks implements StreamForm {
        @Override
        public String of(ObjectNode piece) {
            return "data: " + piece + "\n\n";
        }

        @Override
        public String end(List<PlayedTurn> turns) {
            return "data: [DONE]\n\n";
        }

        @Override
        public String failed(RefusedCallException refusal) {
            return "data: " + AnswerJson.error(refusal) + "\n\n"; // and no end
        }
    }
}
