package dev.millrace.gateway;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.gateway.ToolFormat.ToolCall;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

final class AnswerJson {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private final AgentCall call;
    private final Session session;
    private final Tokenizer tokenizer;
    private final String model;

    AnswerJson(AgentCall call, Session session, Tokenizer tokenizer, String model) {
        this.call = call;
        this.session = session;
        this.tokenizer = tokenizer;
        this.model = model;
    }

    ObjectNode answer(List<PlayedTurn> turns) {
        SessionTurn first = turns.get(0).record();
        ObjectNode answer = head(
                (call.isChat() ? "chatcmpl-" : "cmpl-") + session.id().text() + "-" + first.getTurn(),
                call.isChat() ? "chat.completion" : "text_completion",
                first.getReceivedAtMs() / 1000);
        ArrayNode choices = answer.putArray("choices");
        for (int i = 0; i < turns.size(); i++) {
            choices.add(choice(turns.get(i), i));
        }
        if (call.form().returnTokenIds()) {
            answer.set("prompt_token_ids", ids(turns.get(0).promptTokens()));
        }
        answer.set("usage", usage(turns));
        answer.set("millrace", facts(turns));
        return answer;
    }

    private ObjectNode head(String id, String object, long createdSeconds) {
        return NODES.objectNode()
                .put("id", id)
                .put("object", object)
                .put("created", createdSeconds)
                .put("model", model);
    }

    private ObjectNode pieceHead(String id, long createdSeconds) {
        return head(id, call.isChat() ? "chat.completion.chunk" : "text_completion", createdSeconds);
    }

    private ObjectNode choice(PlayedTurn turn, int index) {
        ObjectNode choice = NODES.objectNode();
        choice.put("index", index);
        if (call.isChat()) {
            choice.set("message", message(turn));
        } else {
            choice.put("text", turn.record().getText());
        }
        choice.set("logprobs", call.form().logProbs() ? logProbs(turn.record()) : NODES.nullNode());
        choice.put("finish_reason", finishReason(turn.record().getFinishReason()));
        if (call.form().returnTokenIds()) {
            choice.set("token_ids", ids(PackedInts.toArray(turn.record().getSampledTokens())));
        }
        return choice;
    }

    private static ObjectNode message(PlayedTurn turn) {
        ObjectNode message = NODES.objectNode();
        message.put("role", "assistant");
        if (turn.answer().calls().isEmpty() || !turn.answer().content().isEmpty()) {
            message.put("content", turn.answer().content());
        } else {
            message.putNull("content");
        }
        message.putNull("refusal");
        if (!turn.answer().calls().isEmpty()) {
            message.set("tool_calls", toolCalls(turn.answer(), false));
        }
        return message;
    }

    static ArrayNode toolCalls(GivenAnswer answer, boolean numbered) {
        ArrayNode calls = NODES.arrayNode();
        for (int i = 0; i < answer.calls().size(); i++) {
            ToolCall made = answer.calls().get(i);
            ObjectNode each = calls.addObject();
            if (numbered) {
                each.put("index", i);
            }
            each.put("id", answer.callPrefix() + i);
            each.put("type", "function");
            each.putObject("function").put("name", made.name()).put("arguments", made.arguments());
        }
        return calls;
    }

    /**
     * A stream chunk.
     *
     * @param tokens added; null for none
     * @param texts one per token; empty without log-probs
     * @param reason of the choice's end; null until then
     */
    ObjectNode piece(
            String id,
            long createdSeconds,
            int index,
            ObjectNode delta,
            AnswerStream.@Nullable Tokens tokens,
            String[] texts,
            @Nullable FinishReason reason) {
        ObjectNode piece = pieceHead(id, createdSeconds);
        ObjectNode choice = piece.putArray("choices").addObject();
        choice.put("index", index);
        if (call.isChat()) {
            choice.set("delta", delta);
        } else {
            choice.put("text", delta.path("content").asText(""));
        }
        choice.putNull("logprobs");
        if (tokens != null && call.form().logProbs()) {
            choice.set("logprobs", logProbs(texts, tokens.logProbs()));
        }
        if (tokens != null && call.form().returnTokenIds()) {
            choice.set("token_ids", ids(tokens.tokens()));
        }
        choice.put("finish_reason", reason == null ? null : finishReason(reason));
        if (call.form().endsWithUsage()) {
            piece.putNull("usage"); // the last piece has it
        }
        return piece;
    }

    /** Last chunk with the usage, if requested. */
    ObjectNode usagePiece(String id, long createdSeconds, List<PlayedTurn> turns) {
        ObjectNode piece = pieceHead(id, createdSeconds);
        piece.putArray("choices");
        piece.set("usage", usage(turns));
        return piece;
    }

    private static String finishReason(FinishReason reason) {
        return switch (reason) {
            case LENGTH -> "length";
            case TOOL_CALLS -> "tool_calls";
            default -> "stop";
        };
    }

    private static ObjectNode usage(List<PlayedTurn> turns) {
        int prompt = turns.get(0).record().getUsage().getPromptTokens();
        int sampled = turns.stream()
                .mapToInt(turn -> turn.record().getUsage().getCompletionTokens())
                .sum();
        ObjectNode usage = NODES.objectNode()
                .put("prompt_tokens", prompt)
                .put("completion_tokens", sampled)
                .put("total_tokens", prompt + sampled);
        Integer cached = turns.get(0).record().getUsage().getCachedTokens();
        if (cached != null) {
            usage.putObject("prompt_tokens_details").put("cached_tokens", cached);
        }
        return usage;
    }

    /** Extra fields: turns, parents and sampling versions. */
    private ObjectNode facts(List<PlayedTurn> turns) {
        ObjectNode facts = NODES.objectNode();
        facts.put("session", session.id().text());
        ArrayNode all = facts.putArray("turns");
        for (PlayedTurn turn : turns) {
            SessionTurn record = turn.record();
            ObjectNode each = all.addObject();
            each.put("turn", record.getTurn());
            each.put("parent_turn", record.getParentTurn());
            each.put(
                    "fork_reason",
                    record.getForkReason() == null
                            ? null
                            : record.getForkReason().toString());
            ArrayNode spans = each.putArray("version_spans");
            for (VersionSpan span : record.getVersionSpans()) {
                spans.addObject()
                        .put("version", span.getVersion())
                        .put("start", span.getStart())
                        .put("end", span.getEnd());
            }
        }
        return facts;
    }

    static ArrayNode ids(int[] tokens) {
        ArrayNode ids = NODES.arrayNode();
        for (int token : tokens) {
            ids.add(token);
        }
        return ids;
    }

    private ObjectNode logProbs(SessionTurn turn) {
        String[] texts = TokenTexts.of(PackedInts.toArray(turn.getSampledTokens()), tokenizer);
        return logProbs(texts, PackedFloats.toArray(turn.getBehaviorLogProbs()));
    }

    private ObjectNode logProbs(String[] texts, float[] logProbs) {
        return call.isChat() ? chatLogProbs(texts, logProbs) : completionLogProbs(texts, logProbs);
    }

    private static ObjectNode chatLogProbs(String[] texts, float[] logProbs) {
        ObjectNode all = NODES.objectNode();
        ArrayNode content = all.putArray("content");
        for (int i = 0; i < texts.length; i++) {
            String text = texts[i];
            ObjectNode each = content.addObject();
            each.put("token", text);
            each.put("logprob", logProbs[i]);
            ArrayNode bytes = each.putArray("bytes");
            for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
                bytes.add(b & 0xFF);
            }
            each.putArray("top_logprobs");
        }
        all.putNull("refusal");
        return all;
    }

    private static ObjectNode completionLogProbs(String[] pieces, float[] logProbs) {
        ObjectNode all = NODES.objectNode();
        ArrayNode texts = all.putArray("tokens");
        ArrayNode values = all.putArray("token_logprobs");
        ArrayNode offsets = all.putArray("text_offset");
        int offset = 0;
        for (int i = 0; i < pieces.length; i++) {
            String text = pieces[i];
            texts.add(text);
            values.add(logProbs[i]);
            offsets.add(offset);
            offset += text.length();
        }
        all.putNull("top_logprobs");
        return all;
    }

    static ObjectNode error(RefusedCallException refusal) {
        ObjectNode error = NODES.objectNode();
        ObjectNode inner = error.putObject("error");
        inner.put("message", refusal.getMessage());
        inner.put("type", refusal.type());
        inner.put("param", refusal.parameter());
        inner.put("code", refusal.code());
        return error;
    }
}
