package dev.millrace.gateway;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.sampling.TurnEngine.TokenListener;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Streams an answer: holds back possible stop texts, tool calls and incomplete characters. The engine's thread adds
 * tokens; the caller's thread takes them.
 */
final class AnswerStream {
    private static final char HALF = '\uFFFD';
    private static final String[] NO_TEXTS = {};

    record Tokens(int choice, int[] tokens, float[] logProbs) {}

    private final AgentCall call;
    private final Tokenizer tokenizer;
    private final List<Integer> stopTokens;
    private final String toolBeginning;
    private final AnswerJson json;
    private final String id;
    private final long createdSeconds;
    private final BlockingQueue<Tokens> handed = new LinkedBlockingQueue<>();
    private final int[][] tokens;
    private final String[] told;
    private final TokenTexts[] texts;

    AnswerStream(
            AgentCall call,
            Tokenizer tokenizer,
            List<Integer> stopTokens,
            ToolFormat tools,
            AnswerJson json,
            String id,
            long createdSeconds) {
        this.call = call;
        this.tokenizer = tokenizer;
        this.stopTokens = stopTokens;
        this.toolBeginning = call.hasTools() ? tools.beginning() : "";
        this.json = json;
        this.id = id;
        this.createdSeconds = createdSeconds;
        this.tokens = new int[call.choices()][0];
        this.told = new String[call.choices()];
        Arrays.fill(told, "");
        this.texts = new TokenTexts[call.choices()];
        Arrays.setAll(texts, choice -> new TokenTexts(tokenizer));
    }

    TokenListener listener(int choice) {
        return (sampled, logProbs) -> handed.add(new Tokens(choice, sampled, logProbs));
    }

    BlockingQueue<Tokens> handed() {
        return handed;
    }

    List<ObjectNode> first() {
        List<ObjectNode> pieces = new ArrayList<>();
        for (int choice = 0; call.isChat() && choice < call.choices(); choice++) {
            ObjectNode delta = JsonNodeFactory.instance.objectNode();
            delta.put("role", "assistant");
            delta.put("content", "");
            pieces.add(json.piece(id, createdSeconds, choice, delta, null, NO_TEXTS, null));
        }
        return pieces;
    }

    ObjectNode next(Tokens more) {
        int choice = more.choice();
        int[] all = PlayedTurn.joined(tokens[choice], more.tokens());
        tokens[choice] = all;
        String text = GivenAnswer.written(all, tokenizer, stopTokens);
        String certain = text.substring(0, Math.max(told[choice].length(), certain(text)));
        ObjectNode delta = JsonNodeFactory.instance.objectNode();
        delta.put("content", certain.startsWith(told[choice]) ? certain.substring(told[choice].length()) : "");
        if (certain.startsWith(told[choice])) {
            told[choice] = certain;
        }
        return json.piece(
                id,
                createdSeconds,
                choice,
                delta,
                more,
                call.form().logProbs() ? texts[choice].next(more.tokens()) : NO_TEXTS,
                null);
    }

    /** Number of characters that later tokens cannot retract. */
    private int certain(String text) {
        int end = text.length();
        while (end > 0 && text.charAt(end - 1) == HALF) {
            end--;
        }
        for (String stop : call.sampling().stop()) {
            end = Math.min(end, before(text, stop));
        }
        if (!toolBeginning.isEmpty()) {
            end = Math.min(end, before(text, toolBeginning));
            end = text.substring(0, end).isBlank() ? 0 : end;
        }
        return end;
    }

    /** Start of a possibly incomplete {@code wanted}. */
    private static int before(String text, String wanted) {
        int there = text.indexOf(wanted);
        if (there >= 0) {
            return there;
        }
        for (int length = Math.min(wanted.length() - 1, text.length()); length > 0; length--) {
            if (text.endsWith(wanted.substring(0, length))) {
                return text.length() - length;
            }
        }
        return text.length();
    }

    List<ObjectNode> last(List<PlayedTurn> turns) {
        List<ObjectNode> pieces = new ArrayList<>();
        for (int choice = 0; choice < turns.size(); choice++) {
            PlayedTurn turn = turns.get(choice);
            String content =
                    call.isChat() ? turn.answer().content() : turn.record().getText();
            ObjectNode delta = JsonNodeFactory.instance.objectNode();
            if (content.length() > told[choice].length()) {
                delta.put("content", content.substring(told[choice].length()));
            }
            if (call.isChat() && !turn.answer().calls().isEmpty()) {
                delta.set("tool_calls", AnswerJson.toolCalls(turn.answer(), true));
            }
            pieces.add(json.piece(
                    id,
                    createdSeconds,
                    choice,
                    delta,
                    null,
                    NO_TEXTS,
                    turn.record().getFinishReason()));
        }
        if (call.form().endsWithUsage()) {
            pieces.add(json.usagePiece(id, createdSeconds, turns));
        }
        return pieces;
    }
}
