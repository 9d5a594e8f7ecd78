package dev.millrace.generator.environment.remote;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.Transcript;
import java.nio.ByteBuffer;
import java.util.Optional;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * Question to a verifier about one rollout, the same when sampled and when replayed.
 *
 * @param texts empty without the vocabulary
 * @param metadata the state of the request: the row of data without its prompt; empty where it is not known
 * @param finishReason of a recorded rollout
 * @param reward what the environment, or the record, says by itself
 */
public record VerdictQuestion(
        String rolloutId,
        Optional<Texts> texts,
        Tokens tokens,
        Optional<String> metadata,
        Optional<String> finishReason,
        double reward) {
    private static final int PROTOCOL = 1;

    /** @param response what the policy wrote */
    public record Texts(String prompt, String response) {}

    /**
     * None of the arrays may be written.
     *
     * @param mask 1 for each token of the response that the policy wrote
     */
    public record Tokens(int[] prompt, int[] response, byte[] mask) {}

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
                Optional.of(new Texts(finished.tokenizer().decode(finished.promptTokens()), finished.text())),
                new Tokens(finished.promptTokens(), tokens, mask),
                Optional.of(finished.environmentState()),
                Optional.empty(),
                finished.verified().reward());
    }

    public ObjectNode body() {
        ObjectNode body = PartnerJson.object()
                .put("protocol", PROTOCOL)
                .put("id", id())
                .put("rollout_id", rolloutId)
                .put("group_id", rolloutId.substring(0, Math.max(0, rolloutId.lastIndexOf('/'))));
        texts.ifPresent(given -> body.put("prompt", given.prompt()).put("response", given.response()));
        add(body.putArray("prompt_tokens"), tokens.prompt());
        add(body.putArray("response_tokens"), tokens.response());
        ArrayNode byPolicy = body.putArray("mask");
        for (byte one : tokens.mask()) {
            byPolicy.add(one);
        }
        metadata.ifPresent(state -> body.set("metadata", PartnerJson.metadata(state)));
        finishReason.ifPresent(reason -> body.put("finish_reason", reason));
        return body.put("reward", reward);
    }

    /** A rollout that is sampled again has its old name and may have other tokens, so the name alone would not do. */
    private String id() {
        ByteBuffer content = ByteBuffer.allocate(
                Integer.BYTES * (tokens.prompt().length + tokens.response().length) + tokens.mask().length);
        for (int token : tokens.prompt()) {
            content.putInt(token);
        }
        for (int token : tokens.response()) {
            content.putInt(token);
        }
        content.put(tokens.mask());
        return rolloutId + "#" + DigestUtils.sha256Hex(content.array()).substring(0, 16);
    }

    private static void add(ArrayNode list, int[] tokens) {
        for (int token : tokens) {
            list.add(token);
        }
    }
}
