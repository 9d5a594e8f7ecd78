package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.Transcript;
import java.nio.ByteBuffer;
import java.util.Optional;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * What a verifier is asked about one rollout, the same whether it is being sampled or replayed.
 *
 * @param rolloutId of the rollout
 * @param prompt its text; empty where the vocabulary is not at hand
 * @param response what the policy wrote, as text; empty where the vocabulary is not at hand
 * @param promptTokens not to be written
 * @param responseTokens not to be written
 * @param mask 1 for each token of the response that the policy wrote; not to be written
 * @param metadata the state of the request: the row of data without its prompt; empty where it is not known
 * @param finishReason of a recorded rollout
 * @param reward what the environment, or the record, says by itself
 */
public record VerdictQuestion(
        String rolloutId,
        Optional<String> prompt,
        Optional<String> response,
        int[] promptTokens,
        int[] responseTokens,
        byte[] mask,
        Optional<String> metadata,
        Optional<String> finishReason,
        double reward) {
    private static final int PROTOCOL = 1;

    static VerdictQuestion of(FinishedResponse finished) {
        Transcript written = finished.response();
        int[] tokens = new int[written.length()];
        byte[] mask = new byte[tokens.length];
        for (int t = 0; t < tokens.length; t++) {
            tokens[t] = written.token(t);
            mask[t] = (byte) (written.byPolicy(t) ? 1 : 0);
        }
        return new VerdictQuestion(
                finished.rolloutId(),
                Optional.of(finished.tokenizer().decode(finished.promptTokens())),
                Optional.of(finished.text()),
                finished.promptTokens(),
                tokens,
                mask,
                Optional.of(finished.environmentState()),
                Optional.empty(),
                finished.verified().reward());
    }

    /** The form that is sent. */
    public ObjectNode body() {
        ObjectNode body = PartnerJson.object()
                .put("protocol", PROTOCOL)
                .put("id", id())
                .put("rollout_id", rolloutId)
                .put("group_id", rolloutId.substring(0, Math.max(0, rolloutId.lastIndexOf('/'))));
        prompt.ifPresent(text -> body.put("prompt", text));
        response.ifPresent(text -> body.put("response", text));
        add(body.putArray("prompt_tokens"), promptTokens);
        add(body.putArray("response_tokens"), responseTokens);
        ArrayNode byPolicy = body.putArray("mask");
        for (byte one : mask) {
            byPolicy.add(one);
        }
        metadata.ifPresent(state -> body.set("metadata", PartnerJson.metadata(state)));
        finishReason.ifPresent(reason -> body.put("finish_reason", reason));
        return body.put("reward", reward);
    }

    /** A rollout that is sampled again has its old name and may have other tokens, so the name alone would not do. */
    private String id() {
        ByteBuffer content =
                ByteBuffer.allocate(Integer.BYTES * (promptTokens.length + responseTokens.length) + mask.length);
        for (int token : promptTokens) {
            content.putInt(token);
        }
        for (int token : responseTokens) {
            content.putInt(token);
        }
        content.put(mask);
        return rolloutId + "#" + DigestUtils.sha256Hex(content.array()).substring(0, 16);
    }

    private static void add(ArrayNode list, int[] tokens) {
        for (int token : tokens) {
            list.add(token);
        }
    }
}
