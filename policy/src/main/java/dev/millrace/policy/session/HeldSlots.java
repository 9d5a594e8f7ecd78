package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

/**
 * State of slots: keys and values, routing, token count and last token of each sequence. The last token has no keys and
 * values yet: it is fed by the step that predicts the next one.
 *
 * <p>Not thread-safe: one owner.
 */
final class HeldSlots implements AutoCloseable {
    /** Padded tokens that go through the prefill graph at once: enough for its products, little enough for its memory. */
    private static final int PREFILL_TOKENS = 1024;

    private final DecoderShape shape;
    private final int capacityTokens;
    private final KeyValueCache cache;
    private final HeldRouting routing;
    private final Prefill prefill;
    private final long[] lastToken;
    private final int[] length;

    /** @param graph stays the caller's */
    HeldSlots(
            Engine engine,
            DecoderShape shape,
            int slots,
            int capacityTokens,
            Prefill.Graph graph,
            PositionTables positions) {
        this.shape = shape;
        this.capacityTokens = capacityTokens;
        this.lastToken = new long[slots];
        this.length = new int[slots];
        this.cache = new KeyValueCache(engine, shape, slots, capacityTokens);
        this.routing = new HeldRouting(shape, slots, capacityTokens);
        this.prefill = new Prefill(engine, shape, graph, cache, routing, positions, PREFILL_TOKENS);
    }

    KeyValueCache cache() {
        return cache;
    }

    HeldRouting routing() {
        return routing;
    }

    /** Tokens in the slot's sequence; 0 if it has none. */
    int length(int slot) {
        return length[slot];
    }

    long[] lastTokens(int first) {
        return Arrays.copyOf(lastToken, first);
    }

    void reset(int slot, int firstToken) {
        set(slot, 1, firstToken);
    }

    void cut(int slot, int tokens, int last) {
        requireHeld(slot, tokens);
        set(slot, tokens, last);
    }

    /** Sets a slot's sequence after its keys and values were written. */
    void set(int slot, int tokens, int last) {
        requireToken(last, slot);
        lastToken[slot] = last;
        length[slot] = tokens;
    }

    void prefill(Weights weights, List<KnownTokens> known) {
        requireShape(weights);
        List<Prefill.Piece> pieces = new ArrayList<>();
        BitSet seen = new BitSet(length.length);
        for (KnownTokens of : known) {
            int[] tokens = of.tokens();
            int slot = of.slot();
            requireRoom(slot, tokens.length);
            if (tokens.length == 0 || seen.get(slot)) {
                throw new IllegalArgumentException("slot " + slot + " is to take in " + tokens.length + " tokens, "
                        + (seen.get(slot) ? "and others in the same call" : "and at least 1 is needed"));
            }
            seen.set(slot);
            for (int token : tokens) {
                requireToken(token, slot);
            }
            // the last token of a sequence is fed by the step that predicts the next one
            int[] fed = new int[tokens.length];
            fed[0] = (int) lastToken[slot];
            System.arraycopy(tokens, 0, fed, 1, tokens.length - 1);
            pieces.add(new Prefill.Piece(slot, length[slot] - 1, fed));
        }
        prefill.feed(weights, pieces);
        for (KnownTokens of : known) {
            lastToken[of.slot()] = of.tokens()[of.tokens().length - 1];
            length[of.slot()] += of.tokens().length;
        }
    }

    /** Writes keys, values and routing of the first tokens of a slot of others of this shape, or of its own, into a slot. */
    void copy(HeldSlots of, int from, int to, int tokens) {
        of.requireHeld(from, tokens);
        cache.copy(of.cache, from, to, tokens - 1);
        routing.copy(of.routing, from, to, tokens - 1);
    }

    /**
     * Records the tokens of a call whose keys and values are already in the cache.
     *
     * @param steps that each of the first slots took
     */
    void append(Session.Result result, int[] steps, DecodeSteps done) {
        routing.take(result, length, steps);
        for (int slot = 0; slot < steps.length; slot++) {
            if (steps[slot] > 0) {
                lastToken[slot] = done.token(steps[slot] - 1, slot);
                length[slot] += steps[slot];
            }
        }
    }

    void requireShape(Weights weights) {
        if (!weights.shape().equals(shape)) {
            throw new IllegalArgumentException(
                    "these weights are of another shape: " + weights.shape() + ", not " + shape);
        }
    }

    private void requireToken(int token, int slot) {
        if (token < 0 || token >= shape.vocabSize()) {
            throw new IllegalArgumentException(
                    "token " + token + " for slot " + slot + " is outside the vocabulary of " + shape.vocabSize());
        }
    }

    void requireHeld(int slot, int tokens) {
        if (tokens < 1 || tokens > length[slot]) {
            throw new IllegalArgumentException("slot " + slot + " holds " + length[slot] + " tokens and not " + tokens);
        }
    }

    void requireRoom(int slot, int tokens) {
        if (length[slot] == 0) {
            throw new IllegalArgumentException("slot " + slot + " has no sequence; reset it with its first token");
        }
        if (length[slot] + tokens > capacityTokens) {
            throw new IllegalArgumentException("slot " + slot + " holds " + length[slot] + " tokens and cannot take "
                    + tokens + " more: capacityTokens=" + capacityTokens);
        }
    }

    @Override
    public void close() {
        cache.close();
    }
}
