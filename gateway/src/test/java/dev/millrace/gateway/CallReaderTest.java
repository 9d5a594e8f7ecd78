package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CallReaderTest {
    private static final String ASK = "'messages': [{'role': 'user', 'content': 'hi'}]";

    @Test
    void shouldReadWhatAnUnmodifiedClientSends() {
        AgentCall call = Played.call(
                true,
                "{'model': 'm', 'messages': [{'role': 'system', 'content': [{'type': 'text', 'text': 'be '}, {'type': 'text',"
                        + " 'text': 'brief'}]}, {'role': 'assistant', 'content': null, 'tool_calls': [{'id': 'c', 'type':"
                        + " 'function', 'function': {'name': 'f', 'arguments': '{\\'a\\': 1}'}}]}], 'user': 'me', 'n': 2,"
                        + " 'max_completion_tokens': 9, 'temperature': 0.7, 'top_p': 0.9, 'seed': 5, 'stop': 'x', 'stream': true,"
                        + " 'stream_options': {'include_usage': true}, 'logit_bias': {}, 'presence_penalty': 0,"
                        + " 'response_format': {'type': 'text'}, 'tool_choice': 'auto'}");
        assertThat(call.model()).isEqualTo("m");
        assertThat(call.choices()).isEqualTo(2);
        assertThat(call.sampling().maxTokens()).hasValue(9);
        assertThat(call.sampling().temperature()).hasValue(0.7);
        assertThat(call.sampling().topP()).hasValue(0.9);
        assertThat(call.sampling().topK()).isEmpty();
        assertThat(call.sampling().seed()).hasValue(5);
        assertThat(call.sampling().stop()).containsExactly("x");
        assertThat(call.form().stream()).isTrue();
        assertThat(call.form().endsWithUsage()).isTrue();
        List<Map<String, Object>> messages = call.prompt().conversation().messages();
        assertThat(messages.get(0)).containsEntry("content", "be brief");
        assertThat(messages.get(1)).containsEntry("content", "");
        assertThat(messages.get(1).get("tool_calls")).asString().contains("arguments={a=1}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "'logit_bias': {'5': 1} | logit_bias",
                "'presence_penalty': 0.5 | presence_penalty",
                "'response_format': {'type': 'json_object'} | response_format",
                "'top_logprobs': 3 | top_logprobs",
                "'tool_choice': 'required' | tool_choice",
                "'reasoning_effort': 'low' | reasoning_effort",
                "'n': 0 | n",
                "'max_tokens': 1.5 | max_tokens",
                "'stop': [''] | stop",
                "'temperature': 'hot' | temperature",
                "'tools': 'x' | tools",
                "'tools': {'f': {}} | tools",
                "'tools': [5] | tools",
                "'stream_options': 5 | stream_options",
                "'stream_options': {'include_usage': 'yes'} | stream_options"
            })
    void shouldRefuseByNameWhatItDoesNotDo(String field, String name) {
        assertThatThrownBy(() -> Played.call(true, "{" + ASK + ", " + field + "}"))
                .isInstanceOfSatisfying(RefusedCallException.class, refusal -> {
                    assertThat(refusal.status()).isEqualTo(400);
                    assertThat(refusal.parameter()).isEqualTo(name);
                    assertThat(refusal.type()).isEqualTo("invalid_request_error");
                    assertThat(refusal).hasMessageStartingWith(name);
                });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "'x' | must be a list: \"x\"",
                "{'a': 1} | must be a list: {\"a\":1}",
                "[null] | has a call without a function that has a name: null",
                "[{'function': 'f'}] | has a call without a function that has a name: {\"function\":\"f\"}",
                "[{'function': {'name': 'f', 'arguments': '{} x'}}] | has arguments that are no JSON: ",
                "[{'function': {'name': 'f', 'arguments': '{\\'a\\': \\'\\\\ud800\\'}'}}] | has an unpaired surrogate "
            })
    void shouldRefuseToolCallsThatAreNone(String calls, String reason) {
        assertThatThrownBy(() -> Played.chat("{'role': 'assistant', 'tool_calls': " + calls + "}"))
                .isInstanceOf(RefusedCallException.class)
                .hasMessageStartingWith("messages[0].tool_calls " + reason);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "'messages': [{'role': 'user', 'content': '\\ud83d'}]",
                "'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': '\\ude00 \\ud83d'}]}]",
                ASK + ", 'stop': ['\\udfff']"
            })
    void shouldRefuseHalfACharacter(String fields) {
        assertThatThrownBy(() -> Played.call(true, "{" + fields + "}"))
                .isInstanceOf(RefusedCallException.class)
                .hasMessageStartingWith("the body has an unpaired surrogate ");
    }

    @Test
    void shouldRefuseWhatIsNoConversationOfTexts() {
        assertThatThrownBy(() -> Played.call(true, "{'messages': []}")).hasMessageContaining("at least one message");
        assertThatThrownBy(() -> Played.chat("{'role': 'user', 'content': [{'type': 'image_url'}]}"))
                .hasMessageContaining("the policy reads only text");
        assertThatThrownBy(() -> Played.chat("{'role': 'user', 'content': 42}"))
                .hasMessage("messages[0].content must be a text or a list of parts: 42");
        assertThatThrownBy(() -> Played.chat("{'role': 'user', 'content': [{'type': 'text', 'text': null}]}"))
                .hasMessageStartingWith("messages[0].content has a part without a text: ");
        assertThatThrownBy(() -> Played.call(false, "{'prompt': ['a', 'b']}"))
                .hasMessageContaining("one text, or one list of token ids");
        assertThatThrownBy(() -> Played.call(false, "{'prompt': 'a', 'logprobs': 5}"))
                .hasMessageContaining("logprobs must be 0");
    }
}
