package dev.millrace.policy.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.tokenizer.ChatMessage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The forms in which published templates are written; rendered.json is what Jinja 3.1.6 makes of them in its sandbox. */
class ChatTemplateTest {
    private static final Path CHAT = Path.of("src", "test", "resources", "chat");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<ChatMessage> ANY = List.of(new ChatMessage("user", "hi"));

    @ParameterizedTest
    @ValueSource(strings = {"headers", "blocks", "thinking", "oneline", "alternating", "macros"})
    void shouldRenderAsJinjaDoes(String name) throws IOException {
        List<List<Map<String, String>>> conversations =
                JSON.readValue(CHAT.resolve("conversations.json").toFile(), new TypeReference<>() {});
        Map<String, List<String>> rendered =
                JSON.readValue(CHAT.resolve("rendered.json").toFile(), new TypeReference<>() {});
        ChatTemplate template = template(Files.readString(CHAT.resolve(name + ".jinja")));
        assertThat(conversations.stream()
                        .map(conversation -> conversation.stream()
                                .map(message -> new ChatMessage(message.get("role"), message.get("content")))
                                .toList())
                        .map(messages -> said(template, messages)))
                .containsExactlyElementsOf(rendered.get(name + ".jinja"));
    }

    private static String said(ChatTemplate template, List<ChatMessage> messages) {
        try {
            return template.render(messages);
        } catch (IllegalArgumentException e) {
            return String.valueOf(e.getMessage())
                    .replaceFirst("the chat template of .* refuses the conversation", "refused");
        }
    }

    @Test
    void shouldBeRefusedADateThatItAsksForWhereThereIsNone() {
        ChatTemplate undated = new ChatTemplate("{{ strftime_now('%Y') }}", "t.jinja", Map.of(), Optional.empty());
        assertThatThrownBy(() -> undated.render(ANY))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("the chat template of t.jinja cannot be rendered: ")
                .hasMessageContaining("strftime_now");
        ChatTemplate guarded = new ChatTemplate(
                "{% if strftime_now is defined %}{{ strftime_now('%Y') }}{% else %}none{% endif %}",
                "t.jinja", Map.of(), Optional.empty());
        assertThat(guarded.render(ANY)).isEqualTo("none");
        assertThatThrownBy(() -> template("{{ strftime_now('%H') }}").render(ANY))
                .hasMessage(
                        "the chat template of t.jinja cannot be rendered: it asks for the time as '%H', and of dates only"
                                + " %d %b %B %Y %m %y %A %a %j are known (line 1); write the rendered text as \"prompt\"");
        assertThat(template("{{ [1, 2, 3][::9223372036854775807] }}").render(ANY))
                .isEqualTo("[1]");
        assertThat(template("{{ strftime_now('%A, %d %B %y %%') }}".replace(" %%", ""))
                        .render(ANY))
                .isEqualTo("Thursday, 05 March 26");
    }

    @Timeout(120)
    @ParameterizedTest
    @ValueSource(
            strings = {
                "{{ messages.getClass() }}",
                "{{ ''.getBytes() }}",
                "{{ messages.clear() }}",
                "{{ messages[0].put('role', 'x') }}",
                "{% include '/etc/passwd' %}",
                "{% import 'a' as b %}",
                "{% extends 'a' %}",
                "{% from 'a' import b %}",
                "{{ now() }}",
                "{{ [1, 2, 3] | random }}",
                "{{ 'a' | md5 }}",
                "{{ unixtimestamp() }}",
                "{% for a in range(999) %}{% for b in range(999) %}{% for c in range(9) %}{% endfor %}{% endfor %}{% endfor %}",
                "{% for a in range(999) %}{% for b in range(99) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}{% endfor %}",
                "{{ 'a' * 100000000 }}",
                "{% set ns = namespace(s='aaaaaaaaaa') %}{% for a in range(30) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
                "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
                "{% for m in messages %}",
                "{{ 1 + }}",
                "{{ raise_exception('no') }}",
                "{{ ____int3rpr3t3r____.config }}"
            })
    void shouldRefuseWhatATemplateHasNoBusinessWith(String program) {
        assertThatThrownBy(() -> System.err.println(
                        program + " gave " + template(program).render(ANY)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("the chat template of t.jinja ");
    }

    private static ChatTemplate template(String program) {
        return new ChatTemplate(
                program,
                "t.jinja",
                Map.of("bos_token", "<s>", "eos_token", "</s>"),
                Optional.of(LocalDate.of(2026, 3, 5)));
    }

    private static String render(String program) {
        return new ChatTemplate(program, "t.jinja", Map.of(), Optional.empty()).render(ANY);
    }

    @Test
    void shouldRefuseWhatIsNestedTooDeeplyToBeParsed() {
        String deepest = "(".repeat(64) + "1" + ")".repeat(64);
        assertThat(render("{{ " + deepest + " }}")).isEqualTo("1");
        for (String program : new String[] {
            "{{ " + "(".repeat(20_000) + "1" + ")".repeat(20_000) + " }}",
            "it's {{ (" + deepest + ") }}",
            "{{ 'a\\'b' ~ [" + deepest + "] }}",
            "{% set a = {'a': " + deepest + "} %}",
            "{% if 1 %}".repeat(20_000) + "{% endif %}".repeat(20_000),
            "{%- for a in b %}".repeat(65)
        }) {
            assertThatThrownBy(() -> render(program))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("are nested more than 64 deep");
        }
        assertThat(render("{# " + "(".repeat(100) + " #}" + "{ ( [ ".repeat(100) + "{{ '((((' }}"))
                .startsWith("{ ( [ ");
        assertThatThrownBy(() -> new NumberExpression("(".repeat(65) + "1" + ")".repeat(65), java.util.Set.of()))
                .hasMessageContaining("nested more than 64 deep");
    }

    @Timeout(60)
    @Test
    void shouldEndOnProgramsThatAreLongOrThatCallThemselves() {
        for (String program : new String[] {
            "{{ " + "1 + ".repeat(20_000) + "1 }}",
            "{{ 1" + " if 1 else 1".repeat(20_000) + " }}",
            "{{ " + "not ".repeat(20_000) + "1 }}",
            "{{ " + "-".repeat(20_000) + "1 }}",
            "{{ messages" + ".x".repeat(20_000) + " }}",
            "{{ 'a'" + " | upper".repeat(20_000) + " }}",
            "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
            "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
            "{% set ns = namespace(l=[1]) %}{% for a in range(40) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
            "{% set ns = namespace(l=[1]) %}{% for a in range(40) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
            "{{ 2 ** 100 }}",
            "{{ (range(99999) | unique | list | length) }}",
            "{% set l = range(99999) | list %}{% for a in l %}{{ -1 in l }}{% endfor %}",
            "{% set l = range(99999) | list %}{% for a in l %}{{ l | length }}{% endfor %}",
            "{% set s = 'a' * 999999 %}{% for a in range(99999) %}{% set t = s | upper %}{% endfor %}",
            "{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(40) %}{% set a.l = [a.l, a.l] %}"
                    + "{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}",
            "{% set a = namespace(l=(1,)) %}{% for i in range(40) %}{% set a.l = (a.l, a.l) %}{% endfor %}{{ {a.l: 1} }}",
            "{{ strftime_now('%H') }}",
            "{{ [1, 2][0:2:0] }}",
            "{{ 4 is divisibleby 0 }}",
            "{{ {[1]: 2} }}",
            "{{ 'a,' * 400000 | length }}{{ ('a,' * 400000).split(',') | length }}",
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "{{ ns.__init__ }}",
            "{{ messages | map(attribute='__class__') | list }}"
        }) {
            assertThatThrownBy(() -> render(program))
                    .as(program.substring(0, Math.min(80, program.length())))
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void shouldGiveAllOfARangeOrRefuseIt() {
        assertThat(render("{% for a in range(3) %}{{ a }}{% endfor %}|{% for a in range(2, 9, 3) %}{{ a }}{% endfor %}"
                        + "|{% for a in range(3, 0, -1) %}{{ a }}{% endfor %}|{% for a in range(0) %}x{% endfor %}"))
                .isEqualTo("012|258|321|");
        assertThat(render("{% for a in range(100000) %}x{% endfor %}")).hasSize(100_000);
        for (String range : new String[] {"range(100001)", "range(1000000000)", "range(0, -100001, -1)"}) {
            assertThatThrownBy(() -> render("{% for a in " + range + " %}x{% endfor %}"))
                    .hasMessageContaining("range has more than 100000 numbers");
        }
        assertThatThrownBy(() -> render("{% for a in range(1, 2, 0) %}x{% endfor %}"))
                .hasMessageContaining("a step that is not 0");
    }
}
