package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.junit.jupiter.api.Test;

class AnswerStreamTest {
    private final Session session = Played.session();

    /** The texts of the pieces, in order, and the last one's reason. */
    private String streamed(AgentCall call, String sampled) {
        AnswerJson json = new AnswerJson(call, session, Played.TOKENIZER, "m");
        AnswerStream stream = new AnswerStream(
                call, Played.TOKENIZER, Played.TOKENIZER.stopTokens(), ToolFormat.HERMES, json, "id", 1);
        StringBuilder text = new StringBuilder();
        stream.first()
                .forEach(piece -> text.append(piece.at("/choices/0/delta/role").asText()));
        for (int token : Played.TOKENIZER.encode(sampled)) {
            stream.listener(0).sampled(new int[] {token}, new float[] {-1});
            text.append('|').append(content(stream.next(stream.handed().remove())));
        }
        List<? extends JsonNode> last = stream.last(List.of(Played.answer(session, call, sampled)));
        last.forEach(piece -> text.append('|')
                .append(content(piece))
                .append(piece.at("/choices/0/delta/tool_calls/0/function/name").asText())
                .append(' ')
                .append(piece.at("/choices/0/finish_reason").asText()));
        return text.toString();
    }

    private static String content(JsonNode piece) {
        return piece.at("/choices/0/delta/content")
                .asText(piece.at("/choices/0/text").asText());
    }

    @Test
    void shouldGiveEachTokenAsItComesAndTheReasonAtTheEnd() {
        assertThat(streamed(Played.chat("{'role': 'user', 'content': 'a'}"), "no$"))
                .isEqualTo("assistant|n|o|| stop");
    }

    @Test
    void shouldHoldBackWhatMayBeAStopText() {
        AgentCall call = Played.call(true, "{'messages': [{'role': 'user', 'content': 'a'}], 'stop': ['xyz']}");
        assertThat(streamed(call, "axbxyz")).isEqualTo("assistant|a||xb||||" + " length");
    }

    @Test
    void shouldGiveACallOfAToolAsOne() {
        AgentCall call =
                Played.call(true, "{'messages': [{'role': 'user', 'content': 'a'}], 'tools': [{'type': 'function'}]}");
        String streamed = streamed(call, "b<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>$");
        assertThat(streamed)
                .startsWith("assistant|b|||")
                .endsWith("|f tool_calls")
                .doesNotContain("<");
    }

    @Test
    void givesTheUsageInTheLastPieceAndNullBefore() {
        AgentCall call = Played.call(
                true,
                "{'messages': [{'role': 'user', 'content': 'a'}], 'stream': true, 'stream_options': {'include_usage': true}}");
        AnswerStream stream = new AnswerStream(
                call,
                Played.TOKENIZER,
                Played.TOKENIZER.stopTokens(),
                ToolFormat.HERMES,
                new AnswerJson(call, session, Played.TOKENIZER, "m"),
                "id",
                1);
        List<? extends JsonNode> last = stream.last(List.of(Played.answer(session, call, "no$")));

        assertThat(stream.first())
                .allSatisfy(piece -> assertThat(piece.get("usage").isNull()).isTrue());
        assertThat(last).hasSize(2);
        assertThat(last.get(0).get("usage").isNull()).isTrue();
        assertThat(last.get(1).at("/usage/completion_tokens").asInt()).isEqualTo(3);
    }
}
