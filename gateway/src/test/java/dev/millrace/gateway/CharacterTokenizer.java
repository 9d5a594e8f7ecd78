package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Conversation;
import dev.millrace.api.tokenizer.Tokenizer;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** A token for each character, except that {@code th} is one token as well; '$' ends a text. The template trims what it renders. */
final class CharacterTokenizer implements Tokenizer {
    static final int END = '$';
    static final int TH = 300;

    @Override
    public int vocabSize() {
        return 301;
    }

    @Override
    public int mostCharacters(int tokens) {
        return 2 * tokens;
    }

    @Override
    public int[] encode(String text) {
        return text.replace("th", String.valueOf((char) TH)).chars().toArray();
    }

    @Override
    public String render(Conversation conversation) {
        StringBuilder text = new StringBuilder();
        if (!conversation.tools().isEmpty()) {
            text.append("tools:").append(conversation.tools().size()).append('$');
        }
        for (Map<String, Object> message : conversation.messages()) {
            text.append(message.get("role"))
                    .append(':')
                    .append(String.valueOf(message.get("content")).strip());
            if (message.get("tool_calls") instanceof List<?> calls) {
                text.append("<tool_call>").append(calls).append("</tool_call>");
            }
            text.append('$');
        }
        return text.append("assistant:").toString();
    }

    @Override
    public String decode(int[] tokens) {
        StringBuilder text = new StringBuilder();
        IntStream.of(tokens).forEach(token -> text.append(token == TH ? "th" : String.valueOf((char) token)));
        return text.toString();
    }

    @Override
    public List<Integer> stopTokens() {
        return List.of(END);
    }

    @Override
    public String hash() {
        return "characters";
    }
}
