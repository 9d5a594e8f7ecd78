package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.gateway.TurnPlayer.TurnPrompt;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What clients of Anthropic's API send and read, as its documentation has it. */
class MessagesTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOOLS =
            "'tools': [{'name': 'find', 'description': 'Finds.', 'input_schema': {'type': 'object'}}]";
    private static final String ASK = "'model': 'm', 'max_tokens': 64, ";

    private final Session session = Played.session();

    private static JsonNode json(String text) {
        try {
            return JSON.readTree(text.replace('\'', '"'));
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    private static AgentCall call(JsonNode body) {
        return AgentCall.of(true, MessagesApi.Call.asChat(body), body.toString(), false);
    }

    private ObjectNode answered(AgentCall call, PlayedTurn turn) {
        return MessagesApi.of(turn, call, new AnswerJson(call, session, Played.TOKENIZER, "m").answer(List.of(turn)));
    }

    @Test
    void shouldReadACallAsTheChatThatSaysTheSame() {
        JsonNode chat = MessagesApi.Call.asChat(
                json(
                        "{" + ASK + "'system': [{'type': 'text', 'text': 'be ', 'cache_control':"
                                + " {'type': 'ephemeral'}}, {'type': 'text', 'text': 'brief'}], 'stop_sequences': ['x'], 'temperature': 0.5,"
                                + " 'top_k': 5, 'stream': true, 'metadata': {'user_id': 'me'}, 'thinking': {'type': 'disabled'}, "
                                + TOOLS
                                + ", 'tool_choice': {'type': 'auto'}, 'messages': [{'role': 'user', 'content': 'hi'}, {'role': 'assistant',"
                                + " 'content': [{'type': 'text', 'text': 'so'}, {'type': 'tool_use', 'id': 't', 'name': 'find', 'input':"
                                + " {'a': 1}}]}, {'role': 'user', 'content': [{'type': 'tool_result', 'tool_use_id': 't', 'content':"
                                + " [{'type': 'text', 'text': 'here'}], 'is_error': false}, {'type': 'text', 'text': 'go on'}]}]}"));
        assertThat(chat)
                .isEqualTo(json(
                        "{'model': 'm', 'max_tokens': 64, 'stream': true, 'temperature': 0.5, 'top_k': 5, 'stop': ['x'],"
                                + " 'messages': [{'role': 'system', 'content': 'be brief'}, {'role': 'user', 'content': 'hi'}, {'role':"
                                + " 'assistant', 'content': 'so', 'tool_calls': [{'id': 't', 'type': 'function', 'function': {'name':"
                                + " 'find', 'arguments': '{\\\"a\\\":1}'}}]}, {'role': 'tool', 'tool_call_id': 't', 'content': 'here'},"
                                + " {'role': 'user', 'content': 'go on'}], 'tools': [{'type': 'function', 'function': {'name': 'find',"
                                + " 'description': 'Finds.', 'parameters': {'type': 'object'}}}]}"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "'thinking': {'type': 'enabled'} | thinking",
                "'tool_choice': {'type': 'any'} | tool_choice",
                "'tools': [{'type': 'web_search_20250305', 'name': 'web_search'}] | tools",
                "'tools': 'find' | tools",
                "'tools': {'find': {'name': 'find'}} | tools",
                "'mcp_servers': [] | mcp_servers",
            })
    void shouldRefuseByNameWhatIsNotDone(String field, String name) {
        JsonNode body = json("{" + ASK + field + ", 'messages': [{'role': 'user', 'content': 'hi'}]}");
        assertThatThrownBy(() -> MessagesApi.Call.asChat(body))
                .isInstanceOfSatisfying(
                        RefusedCallException.class,
                        e -> assertThat(e.parameter()).isEqualTo(name));
    }

    @Test
    void shouldRefuseImagesBrokenUsesOfToolsAndCallsWithoutALimit() {
        assertThatThrownBy(() -> MessagesApi.Call.asChat(json(
                        "{" + ASK + "'messages': [{'role': 'user', 'content': [{'type': 'image', 'source': {}}]}]}")))
                .hasMessageContaining("messages[0].content[0] is a block of the type 'image'");
        for (String use : List.of("'input': {}", "'name': 'find', 'input': 'x'", "'name': 'find', 'input': [1]")) {
            assertThatThrownBy(() -> MessagesApi.Call.asChat(json("{" + ASK
                            + "'messages': [{'role': 'assistant', 'content': [{'type': 'tool_use', " + use + "}]}]}")))
                    .hasMessageStartingWith("messages[0].content[0] must have a name and an input that is an object: ");
        }
        assertThatThrownBy(() -> MessagesApi.Call.asChat(json("{'messages': [{'role': 'user', 'content': 'hi'}]}")))
                .hasMessageStartingWith("max_tokens must be");
        assertThatThrownBy(() -> MessagesApi.Call.asChat(json("[]"))).hasMessage("the body must be a JSON object");
        assertThat(MessagesApi.Call.counted(json("{'messages': [{'role': 'user', 'content': 'hi'}]}")))
                .as("nothing is sampled")
                .isEqualTo(json("{'messages': [{'role': 'user', 'content': 'hi'}]}"));
    }

    @Test
    void shouldGoOnFromTheVeryTokensWhereTheUseOfAToolIsAnswered() {
        ObjectNode first =
                (ObjectNode) json("{" + ASK + TOOLS + ", 'messages': [{'role': 'user', 'content': 'where?'}]}");
        AgentCall call = call(first);
        PlayedTurn turn = Played.answer(
                session, call, "so<tool_call>{\"name\":  \"find\", \"arguments\": {\"a\": 1}}</tool_call>$");
        ObjectNode answer = answered(call, turn);
        assertThat(answer.get("stop_reason").asText()).isEqualTo("tool_use");
        assertThat(answer.get("content"))
                .isEqualTo(json("[{'type': 'text', 'text': 'so'}, {'type': 'tool_use', 'id': '"
                        + turn.answer().callPrefix() + "0', 'name': 'find', 'input': {'a': 1}}]"));

        ObjectNode second = first.deepCopy();
        second.withArray("messages").addObject().put("role", "assistant").set("content", answer.get("content"));
        second.withArray("messages")
                .addObject()
                .put("role", "user")
                .putArray("content")
                .addObject()
                .put("type", "tool_result")
                .put("tool_use_id", turn.answer().callPrefix() + "0")
                .put("content", "there");
        TurnPrompt prompt = Played.MATCHER.match(call(second), session.turns());
        assertThat(prompt.parent()).isSameAs(turn);
        assertThat(prompt.tokens()).startsWith(turn.tokens());
    }

    @Test
    void shouldSayWhyAnAnswerIsOver() {
        JsonNode body =
                json("{" + ASK + "'stop_sequences': ['yz', 'x'], 'messages': [{'role': 'user', 'content': 'a'}]}");
        AgentCall call = call(body);
        assertThat(answered(call, Played.answer(session, call, "no$"))
                        .get("stop_reason")
                        .asText())
                .isEqualTo("end_turn");
        assertThat(answered(call, Played.answer(session, call, "no"))
                        .get("stop_reason")
                        .asText())
                .isEqualTo("max_tokens");
    }

    @Test
    void shouldStreamBlocksThatBeginAndEnd() {
        AgentCall call = call(
                json("{" + ASK + TOOLS + ", 'stream': true, 'messages': [{'role': 'user', 'content': 'where?'}]}"));
        String sampled = "so<tool_call>{\"name\": \"find\", \"arguments\": {\"a\": 1}}</tool_call>$";
        AnswerStream pieces = new AnswerStream(
                call,
                Played.TOKENIZER,
                Played.TOKENIZER.stopTokens(),
                ToolFormat.HERMES,
                new AnswerJson(call, session, Played.TOKENIZER, "m"),
                "id",
                1);
        MessagesApi.Stream form = new MessagesApi.Stream(call);
        StringBuilder stream = new StringBuilder();
        pieces.first().forEach(piece -> stream.append(form.of(piece)));
        for (int token : Played.TOKENIZER.encode(sampled)) {
            pieces.listener(0).sampled(new int[] {token}, new float[] {-1});
            stream.append(form.of(pieces.next(pieces.handed().remove())));
        }
        List<PlayedTurn> turns = List.of(Played.answer(session, call, sampled));
        pieces.last(turns).forEach(piece -> stream.append(form.of(piece)));
        stream.append(form.end(turns));

        List<String> events = stream.toString()
                .lines()
                .filter(line -> line.startsWith("event: "))
                .map(line -> line.substring("event: ".length()))
                .toList();
        assertThat(events)
                .containsExactly(
                        "message_start",
                        "content_block_start",
                        "content_block_delta",
                        "content_block_delta",
                        "content_block_stop",
                        "content_block_start",
                        "content_block_delta",
                        "content_block_stop",
                        "message_delta",
                        "message_stop");
        assertThat(stream.toString())
                .contains("\"partial_json\":\"{\\\"a\\\":1}\"")
                .contains("\"stop_reason\":\"tool_use\"")
                .contains("\"output_tokens\":" + sampled.length());
    }

    @Test
    void shouldSayWhatWentWrongAsItsClientsReadIt() {
        assertThat(MessagesApi.error(RefusedCallException.notNow("log", "later")))
                .isEqualTo(json("{'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'later'}}"));
        assertThat(MessagesApi.error(RefusedCallException.unauthorized())
                        .at("/error/type")
                        .asText())
                .isEqualTo("authentication_error");
    }
}
