package dev.millrace.generator.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * A stream as Anthropic's clients read it: events with a name each, and blocks of content that begin and end. Made of the pieces that
 * clients of the OpenAI API are given.
 */
final class MessagesStream implements StreamForm {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private final AgentCall call;
    private boolean isBegun;
    private boolean isTextOpen;
    private int block;

    MessagesStream(AgentCall call) {
        this.call = call;
    }

    @Override
    public String of(ObjectNode piece) {
        StringBuilder events = new StringBuilder();
        if (!isBegun) {
            isBegun = true;
            ObjectNode begin = event("message_start");
            ObjectNode message = MessagesAnswer.head(
                    "msg_" + piece.path("id").asText(), piece.path("model").asText());
            message.putArray("content");
            message.putNull("stop_reason");
            message.putNull("stop_sequence");
            message.putObject("usage").put("input_tokens", 0).put("output_tokens", 0); // the end has them
            begin.set("message", message);
            add(events, begin);
        }
        JsonNode delta = piece.path("choices").path(0).path("delta");
        String text = delta.path("content").asText("");
        if (!text.isEmpty()) {
            if (!isTextOpen) {
                isTextOpen = true;
                ObjectNode start = event("content_block_start").put("index", block);
                start.putObject("content_block").put("type", "text").put("text", "");
                add(events, start);
            }
            ObjectNode more = event("content_block_delta").put("index", block);
            more.putObject("delta").put("type", "text_delta").put("text", text);
            add(events, more);
        }
        for (JsonNode use : delta.path("tool_calls")) {
            closeText(events);
            ObjectNode start = event("content_block_start").put("index", block);
            start.putObject("content_block")
                    .put("type", "tool_use")
                    .put("id", use.path("id").asText())
                    .put("name", use.at("/function/name").asText())
                    .putObject("input");
            add(events, start);
            ObjectNode input = event("content_block_delta").put("index", block);
            input.putObject("delta")
                    .put("type", "input_json_delta")
                    .put("partial_json", use.at("/function/arguments").asText());
            add(events, input);
            add(events, event("content_block_stop").put("index", block++));
        }
        return events.toString();
    }

    private void closeText(StringBuilder events) {
        if (isTextOpen) {
            isTextOpen = false;
            add(events, event("content_block_stop").put("index", block++));
        }
    }

    @Override
    public String end(List<PlayedTurn> turns) {
        StringBuilder events = new StringBuilder();
        closeText(events);
        ObjectNode over = event("message_delta");
        MessagesAnswer.end(over.putObject("delta"), turns.get(0), call);
        over.set("usage", MessagesAnswer.usage(turns.get(0).record().getUsage()));
        add(events, over);
        add(events, event("message_stop"));
        return events.toString();
    }

    @Override
    public String failed(RefusedCallException refusal) {
        StringBuilder events = new StringBuilder();
        add(events, MessagesAnswer.error(refusal));
        return events.toString();
    }

    private static ObjectNode event(String type) {
        return NODES.objectNode().put("type", type);
    }

    private static void add(StringBuilder events, ObjectNode event) {
        events.append("event: ")
                .append(event.get("type").textValue())
                .append("\ndata: ")
                .append(event)
                .append("\n\n");
    }
}
