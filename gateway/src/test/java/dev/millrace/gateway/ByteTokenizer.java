package dev.millrace.gateway;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.policy.tokenizer.ChatTemplate;
import dev.millrace.policy.tokenizer.HuggingFaceTokenizer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A byte-level tokenizer with few merges, so that most characters beyond ASCII are several tokens, and the chat template of Qwen's kind. */
final class ByteTokenizer {
    static final String END = "<|im_end|>";
    static final String BEGIN = "<|im_start|>";

    /** Of {@code bananaSTOP!} the first token with a part of the stop is {@code aS}, and the last {@code P!}. */
    private static final List<String> MERGES = List.of("a S", "P !", "t h", "th e", "Ġ the");

    private static final String TEMPLATE = """
            {% if tools %}<|im_start|>system
            {% for tool in tools %}{{ tool | tojson }}
            {% endfor %}<|im_end|>
            {% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
            {{ m.content }}{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>
            {"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
            </tool_call>{% endfor %}{% endif %}<|im_end|>
            {% endfor %}<|im_start|>assistant

            """; // the last newline is Jinja's

    private ByteTokenizer() {}

    static HuggingFaceTokenizer open() {
        ObjectMapper mapper = new ObjectMapper();
        ObjectNode file = mapper.createObjectNode();
        ObjectNode vocabulary = mapper.createObjectNode();
        for (int i = 0, moved = 256; i < 256; i++) {
            boolean isPrinted = i >= '!' && i <= '~' || i >= 161 && i <= 172 || i >= 174;
            vocabulary.put(String.valueOf((char) (isPrinted ? i : moved++)), i);
        }
        MERGES.forEach(merge -> vocabulary.put(merge.replace(" ", ""), vocabulary.size()));
        ArrayNode added = file.put("version", "1.0").putArray("added_tokens");
        List<String> special = List.of("<|endoftext|>", BEGIN, END);
        for (int i = 0; i < special.size(); i++) {
            added.addObject()
                    .put("id", vocabulary.size() + i)
                    .put("content", special.get(i))
                    .put("single_word", false)
                    .put("lstrip", false)
                    .put("rstrip", false)
                    .put("normalized", false)
                    .put("special", true);
        }
        for (String part : List.of("pre_tokenizer", "decoder")) {
            file.putObject(part)
                    .put("type", "ByteLevel")
                    .put("add_prefix_space", false)
                    .put("trim_offsets", true)
                    .put("use_regex", false);
        }
        ObjectNode model = file.putObject("model").put("type", "BPE");
        model.set("vocab", vocabulary);
        MERGES.forEach(model.putArray("merges")::add);
        return new HuggingFaceTokenizer(
                file.toString().getBytes(StandardCharsets.UTF_8),
                "tokenizer.json",
                0,
                List.of(vocabulary.size() + special.indexOf(END)),
                Optional.of(new ChatTemplate(TEMPLATE, "chat_template.jinja", Map.of(), Optional.empty())));
    }
}
