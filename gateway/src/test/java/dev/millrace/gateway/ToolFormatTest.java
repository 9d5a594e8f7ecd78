package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.gateway.ToolFormat.ToolCall;
import dev.millrace.gateway.ToolFormat.WrittenText;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ToolFormatTest {

    @Test
    void shouldReadCallsAsHermesAndQwenWriteThem() {
        WrittenText read = ToolFormat.HERMES
                .read("Let me see.<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": [1, 2]}}\n</tool_call>\n"
                        + "<tool_call>{\"name\": \"b\", \"arguments\": {}}</tool_call>")
                .orElseThrow();
        assertThat(read.content()).isEqualTo("Let me see.");
        assertThat(read.calls()).containsExactly(new ToolCall("a", "{\"x\":[1,2]}"), new ToolCall("b", "{}"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "no call",
                "<tool_call>{\"name\": \"a\", \"arguments\": {}}",
                "<tool_call>{\"name\": \"a\"}</tool_call>",
                "<tool_call>{\"name\": \"a\", \"arguments\": {\"x\": \"\\ud800\"}}</tool_call>",
                "<tool_call>{name: a}</tool_call>",
                "<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call> and more",
                "<tool_call>{\"name\": \"a\", \"arguments\": {}} {\"name\": \"b\", \"arguments\": {}}</tool_call>",
                "<tool_call>{\"name\": \"a\", \"arguments\": {}} and then I wait</tool_call>",
                "<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call> then <tool_call>{\"name\": \"b\", \"arguments\": {}}</tool_call>"
            })
    void shouldLeaveTextWhatIsNotWrittenSo(String text) {
        assertThat(ToolFormat.HERMES.read(text)).isEmpty();
    }

    @Test
    void shouldKeepTheNumbersOfACall() {
        assertThat(ToolFormat.HERMES.read("<tool_call>{\"name\": \"a\", \"arguments\": {\"x\": 1e400, \"y\": [1.50,"
                        + " 0.12345678901234567891]}}</tool_call>"))
                .contains(new WrittenText(
                        "", List.of(new ToolCall("a", "{\"x\":1E+400,\"y\":[1.50,0.12345678901234567891]}"))));
    }

    @Test
    void shouldKnowTheNumbersOfItsCallAgain() {
        String arguments = "{\"x\":1E+400,\"y\":0.12345678901234567891}";
        Object given = Played.chat("{'role': 'assistant', 'tool_calls': [{'function': {'name': 'a', 'arguments': '"
                        + arguments.replace("\"", "\\'") + "'}}]}")
                .prompt()
                .conversation()
                .messages()
                .get(0)
                .get("tool_calls");
        Map<?, ?> function = (Map<?, ?>) ((Map<?, ?>) ((List<?>) given).get(0)).get("function");
        assertThat(new ToolCall("a", arguments).hasArguments(function.get("arguments")))
                .isTrue();
    }

    @Test
    void shouldReadACallAsLlamaWritesIt() {
        assertThat(ToolFormat.LLAMA3.read("{\"name\": \"a\", \"parameters\": {\"x\": \"y\"}}"))
                .contains(new WrittenText("", List.of(new ToolCall("a", "{\"x\":\"y\"}"))));
        assertThat(ToolFormat.LLAMA3.read("{\"name\": \"a\"}")).isEmpty();
        assertThat(ToolFormat.LLAMA3.read(
                        "{\"name\": \"a\", \"parameters\": {}}; {\"name\": \"b\", \"parameters\": {}}"))
                .isEmpty();
    }

    @Test
    void shouldFindOutWhichOneAChatTemplateWrites() {
        assertThat(ToolFormat.of(Played.TOKENIZER)).isEqualTo(ToolFormat.HERMES);
        assertThat(ToolFormat.of(dev.millrace.generator.environment.Symbols.tokenizer()))
                .isEqualTo(ToolFormat.NONE);
    }
}
