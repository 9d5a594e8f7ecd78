package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.gateway.GatewayServer.StreamForm;
import dev.millrace.gateway.TurnPlayer.TurnPrompt;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What clients of OpenAI's Responses API send and read, as its documentation has it. */
class ResponsesTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOOLS =
            "'tools': [{'type': 'function', 'name': 'find', 'description': 'Finds.', 'strict': true,"
                    + " 'parameters': {'type': 'object'}}]";
    private static final String USES_TOOL =
            "so<tool_call>{\"name\":  \"find\", \"arguments\": {\"a\": 1}}</tool_call>$";

    private final Session session = Played.session();

    private static JsonNode json(String text) {
        try {
            return JSON.readTree(text.replace('\'', '"'));
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    private static JsonNode chat(String fields) {
        return new ResponsesApi(json("{" + fields + "}")).asChat();
    }

    private static AgentCall call(JsonNode body) {
        return AgentCall.of(true, new ResponsesApi(body).asChat(), body.toString(), false);
    }

    private ObjectNode completion(AgentCall call, List<PlayedTurn> turns) {
        return new AnswerJson(call, session, Played.TOKENIZER, "m").answer(turns);
    }

    private ObjectNode answered(JsonNode body, PlayedTurn turn) {
        return new ResponsesApi(body).answer(turn, completion(call(body), List.of(turn)));
    }

    @Test
    void shouldReadACallAsTheChatThatSaysTheSame() {
        assertThat(
                        chat(
                                "'model': 'm', 'instructions': 'be brief', 'max_output_tokens': 64, 'temperature': 0.5, 'stream': true,"
                                        + " 'store': false, 'include': ['reasoning.encrypted_content'], 'reasoning': {'effort': null},"
                                        + " 'text': {'format': {'type': 'text'}}, 'truncation': 'disabled', 'tool_choice': 'auto', "
                                        + TOOLS
                                        + ", 'input': [{'role': 'developer', 'content': 'in French'}, {'type': 'message', 'role': 'user',"
                                        + " 'content': [{'type': 'input_text', 'text': 'h'}, {'type': 'input_text', 'text': 'i'}]},"
                                        + " {'type': 'message', 'id': 'msg_1', 'status': 'completed', 'role': 'assistant', 'content':"
                                        + " [{'type': 'output_text', 'text': 'so', 'annotations': []}]}, {'type': 'function_call', 'call_id':"
                                        + " 't', 'name': 'find', 'arguments': '{}'}, {'type': 'function_call_output', 'call_id': 't',"
                                        + " 'output': 'here'}, {'type': 'function_call', 'call_id': 'u', 'name': 'find', 'arguments': '{}'}]"))
                .isEqualTo(
                        json("{'model': 'm', 'max_tokens': 64, 'stream': true, 'temperature': 0.5, 'logprobs': false,"
                                + " 'tool_choice': 'auto', 'messages': [{'role': 'system', 'content': 'be brief'}, {'role':"
                                + " 'system', 'content': 'in French'}, {'role': 'user', 'content': 'hi'}, {'role':"
                                + " 'assistant', 'content': 'so', 'tool_calls': [{'id': 't', 'type': 'function', 'function':"
                                + " {'name': 'find', 'arguments': '{}'}}]}, {'role': 'tool', 'tool_call_id': 't', 'content':"
                                + " 'here'}, {'role': 'assistant', 'content': '', 'tool_calls': [{'id': 'u', 'type':"
                                + " 'function', 'function': {'name': 'find', 'arguments': '{}'}}]}], 'tools': [{'type':"
                                + " 'function', 'function': {'name': 'find', 'description': 'Finds.', 'parameters': {'type':"
                                + " 'object'}}}]}"));
        assertThat(chat("'input': 'hi', 'include': ['message.output_text.logprobs']"))
                .isEqualTo(json("{'logprobs': true, 'messages': [{'role': 'user', 'content': 'hi'}]}"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "'input': 'hi', 'previous_response_id': 'resp_1' | previous_response_id",
                "'input': 'hi', 'conversation': 'conv_1' | conversation",
                "'input': 'hi', 'background': true | background",
                "'input': 'hi', 'truncation': 'auto' | truncation",
                "'input': 'hi', 'prompt': {'id': 'p'} | prompt",
                "'input': 'hi', 'text': {'format': {'type': 'json_schema'}} | text",
                "'input': 'hi', 'text': {'verbosity': 'low'} | text",
                "'input': 'hi', 'text': 'json' | text",
                "'input': 'hi', 'reasoning': {'effort': 'low'} | reasoning",
                "'input': 'hi', 'reasoning': 'low' | reasoning",
                "'input': 'hi', 'include': 'message.output_text.logprobs' | include",
                "'input': 'hi', 'include': ['file_search_call.results'] | include",
                "'input': 'hi', 'tools': [{'type': 'web_search'}] | tools",
                "'input': 'hi', 'tools': {'type': 'function'} | tools",
                "'input': 'hi', 'max_output_tokens': 0 | max_output_tokens",
                "'input': [] | input",
                "'model': 'm' | input",
                "'input': ['hi'] | input[0]",
                "'input': [{'type': 'reasoning', 'summary': []}] | input[0]",
                "'input': [{'type': 'function_call', 'name': 'find', 'arguments': {}}] | input[0]",
                "'input': [{'type': 'function_call_output', 'call_id': 't'}] | input[0].output",
                "'input': [{'role': 'tool', 'content': 'x'}] | input[0].role",
                "'input': [{'role': 'user', 'content': [{'type': 'input_image', 'file_id': 'f'}]}] | input[0].content",
                "'input': [{'role': 'user', 'content': [{'type': 'input_text'}]}] | input[0].content",
            })
    void shouldRefuseByNameWhatIsNotDone(String fields, String name) {
        assertThatThrownBy(() -> chat(fields)).isInstanceOfSatisfying(RefusedCallException.class, e -> {
            assertThat(e.status()).isEqualTo(400);
            assertThat(e.parameter()).isEqualTo(name);
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"[]", "'hi'", "null"})
    void shouldRefuseABodyThatIsNoObject(String body) {
        JsonNode given = json(body);
        assertThatThrownBy(() -> new ResponsesApi(given)).hasMessage("the body must be a JSON object");
    }

    @Test
    void shouldGoOnFromTheVeryTokensWhereAFunctionCallIsAnswered() {
        JsonNode first = json("{'model': 'm', " + TOOLS + ", 'input': [{'role': 'user', 'content': 'where?'}]}");
        PlayedTurn turn = Played.answer(session, call(first), USES_TOOL);
        ObjectNode answer = answered(first, turn);
        String callId = turn.answer().callPrefix() + "0";
        assertThat(answer.get("status").textValue()).isEqualTo("completed");
        assertThat(answer.at("/output/0/content/0/text").textValue()).isEqualTo("so");
        assertThat(answer.at("/output/1"))
                .isEqualTo(
                        json("{'id': 'fc_" + callId + "', 'type': 'function_call', 'status': 'completed', 'call_id': '"
                                + callId + "', 'name': 'find', 'arguments': '{\\\"a\\\":1}'}"));
        assertThat(answer.at("/usage/output_tokens").intValue()).isEqualTo(USES_TOOL.length());

        ObjectNode second = first.deepCopy();
        ArrayNode input = second.withArrayProperty("input");
        answer.get("output").forEach(input::add);
        input.addObject()
                .put("type", "function_call_output")
                .put("call_id", callId)
                .put("output", "there");
        TurnPrompt prompt = Played.MATCHER.match(call(second), session.turns());
        assertThat(prompt.parent()).isSameAs(turn);
        assertThat(prompt.tokens()).startsWith(turn.tokens());
    }

    @Test
    void shouldSayThatAnAnswerIsCut() {
        JsonNode body = json("{'input': 'a', 'include': ['message.output_text.logprobs']}");
        ObjectNode answer = answered(body, Played.answer(session, call(body), "no"));
        assertThat(answer.get("status").textValue()).isEqualTo("incomplete");
        assertThat(answer.get("incomplete_details")).isEqualTo(json("{'reason': 'max_output_tokens'}"));
        assertThat(answer.at("/output/0/status").textValue()).isEqualTo("incomplete");
        assertThat(answer.at("/output/0/content/0/logprobs/1/logprob").doubleValue())
                .isEqualTo(-1.5);
    }

    private List<JsonNode> streamed(JsonNode body, String sampled) {
        AgentCall call = call(body);
        AnswerStream pieces = new AnswerStream(
                call,
                Played.TOKENIZER,
                Played.TOKENIZER.stopTokens(),
                ToolFormat.HERMES,
                new AnswerJson(call, session, Played.TOKENIZER, "m"),
                "id",
                1);
        StreamForm form = new ResponsesApi(body).stream(turns -> completion(call, turns));
        StringBuilder stream = new StringBuilder();
        pieces.first().forEach(piece -> stream.append(form.of(piece)));
        for (int token : Played.TOKENIZER.encode(sampled)) {
            pieces.listener(0).sampled(new int[] {token}, new float[] {-1});
            stream.append(form.of(pieces.next(pieces.handed().remove())));
        }
        List<PlayedTurn> turns = List.of(Played.answer(session, call, sampled));
        pieces.last(turns).forEach(piece -> stream.append(form.of(piece)));
        stream.append(form.end(turns));
        List<JsonNode> events = new ArrayList<>();
        for (String event : stream.toString().split("\n\n")) {
            List<String> lines = event.lines().toList();
            JsonNode data = json(lines.get(1).substring("data: ".length()).replace("'", "\\u0027"));
            assertThat(lines.get(0)).isEqualTo("event: " + data.get("type").textValue());
            assertThat(data.get("sequence_number").intValue()).isEqualTo(events.size());
            events.add(data);
        }
        return events;
    }

    private static List<String> types(List<JsonNode> events) {
        return events.stream()
                .map(event -> event.get("type").textValue().substring("response.".length()))
                .toList();
    }

    @Test
    void shouldStreamItemsThatBeginAndEnd() {
        JsonNode body = json("{'stream': true, " + TOOLS + ", 'input': 'where?'}");
        List<JsonNode> events = streamed(body, USES_TOOL);
        assertThat(types(events))
                .containsExactly(
                        "created",
                        "in_progress",
                        "output_item.added",
                        "content_part.added",
                        "output_text.delta",
                        "output_text.delta",
                        "output_text.done",
                        "content_part.done",
                        "output_item.done",
                        "output_item.added",
                        "function_call_arguments.delta",
                        "function_call_arguments.done",
                        "output_item.done",
                        "completed");
        JsonNode whole = events.get(13).get("response");
        assertThat(List.of(events.get(8).get("item"), events.get(12).get("item")))
                .as("the items of the whole answer")
                .isEqualTo(List.of(whole.at("/output/0"), whole.at("/output/1")));
        assertThat(events.get(12).get("output_index").intValue()).isEqualTo(1);
        assertThat(whole.get("id")).isEqualTo(events.get(0).at("/response/id"));
        assertThat(whole.at("/usage/output_tokens").intValue()).isEqualTo(USES_TOOL.length());
    }

    @Test
    void shouldStreamAnEmptyAnswerAsAnItemAndSayThatAnAnswerIsCut() {
        JsonNode body = json("{'stream': true, 'input': 'a'}");
        assertThat(types(streamed(body, "$")))
                .containsExactly(
                        "created",
                        "in_progress",
                        "output_item.added",
                        "content_part.added",
                        "output_text.done",
                        "content_part.done",
                        "output_item.done",
                        "completed");
        List<JsonNode> cut = streamed(body, "no");
        JsonNode last = cut.get(cut.size() - 1);
        assertThat(last.get("type").textValue()).isEqualTo("response.incomplete");
        assertThat(cut.get(cut.size() - 2).get("item")).isEqualTo(last.at("/response/output/0"));
    }

    @Test
    void shouldEndAStreamThatFails() {
        JsonNode body = json("{'stream': true, 'input': 'a'}");
        String failed = new ResponsesApi(body)
                .stream(turns -> completion(call(body), turns)).failed(RefusedCallException.notNow("log", "later"));
        assertThat(failed)
                .startsWith("event: response.failed\n")
                .contains("\"code\":\"server_error\",\"message\":\"later\"");
    }
}
