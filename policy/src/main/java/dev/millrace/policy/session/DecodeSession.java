package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecodeGraph;
import dev.millrace.policy.decoder.DecodeGraph.Features;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.ort.OrtException;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.LongStream;

/**
 * Generates for many sequences at once, one per slot, a few tokens per call: continuous batching.
 *
 * <p>Slots are independent. In every step of a call each active slot appends one token to its sequence, either forced
 * (environment text) or sampled. Use {@link #prefill} for prompts and other long known text: it appends many tokens at
 * once and skips the head. The loop over the steps, the use of the key/value cache and the sampling are in the graph:
 * one call crosses into ONNX Runtime once.
 *
 * <p>Weights may change with every call. Sequences in flight keep the keys and values that earlier weights computed;
 * the new weights only compute the tokens appended from then on. Not thread-safe: one owner.
 */
public final class DecodeSession implements AutoCloseable {
    private static final float KEEP_ALL = 2f;
    /**
     * Slots go through the graph in multiples of this number. The runtime then plans for few sizes, and a batch of many
     * slots never shrinks to a single row, where the kernels take another code path with other roundings.
     */
    private static final int ROW_STEP = 8;

    private final Engine engine;
    private final PreparedWeights prepared;
    private final DecoderShape shape;
    private final int slots;
    private final int capacityTokens;
    private final int tokensPerCall;
    private final Map<Features, WeightedGraph> compiled = new HashMap<>();
    private final Prefill.Graph prefillGraph;
    private final PositionTables positions;
    private final HeldSlots held;

    /**
     * @param capacityTokens longest sequence, prompt included; at most the shape's maxPositions
     * @param tokensPerCall  most tokens a slot appends in one call, at most the shape's sliding window if it has one; new weights
     *     are taken up between calls
     */
    public DecodeSession(Engine engine, DecoderShape shape, int slots, int capacityTokens, int tokensPerCall) {
        this(engine, shape, slots, capacityTokens, tokensPerCall, new PreparedWeights(Precision.F32));
    }

    /**
     * @param slots          as above
     * @param capacityTokens as above
     * @param tokensPerCall  as above
     * @param prepared weights in the engine's precision; loaders may prepare weights there
     */
    public DecodeSession(
            Engine engine,
            DecoderShape shape,
            int slots,
            int capacityTokens,
            int tokensPerCall,
            PreparedWeights prepared) {
        if (slots < 1 || tokensPerCall < 1) {
            throw new IllegalArgumentException(
                    "slots and tokensPerCall must be at least 1: slots=" + slots + ", tokensPerCall=" + tokensPerCall);
        }
        if (capacityTokens < 2 || capacityTokens > shape.maxPositions()) {
            throw new IllegalArgumentException("capacityTokens must be at least 2 and at most the model's maxPositions="
                    + shape.maxPositions() + ": capacityTokens=" + capacityTokens);
        }
        int window = shape.traits().slidingWindow();
        if (window > 0 && tokensPerCall > window) {
            throw new IllegalArgumentException("tokensPerCall must be at most the model's sliding window of " + window
                    + " tokens: tokensPerCall=" + tokensPerCall);
        }
        this.engine = engine;
        this.prepared = prepared;
        this.shape = shape;
        this.slots = slots;
        this.capacityTokens = capacityTokens;
        this.tokensPerCall = tokensPerCall;
        // a slot with fewer steps than the call computes beyond its own end
        this.positions = new PositionTables(shape, Math.addExact(capacityTokens, tokensPerCall));
        this.prefillGraph = new Prefill.Graph(engine, shape, prepared);
        this.held = new HeldSlots(engine, shape, slots, capacityTokens, prefillGraph, positions);
        graph(Features.NONE);
    }

    /** Slots for another thread, with graphs and positions of this session. */
    public SpareSlots spare(int spareSlots) {
        return new SpareSlots(new HeldSlots(engine, shape, spareSlots, capacityTokens, prefillGraph, positions), held);
    }

    public int slots() {
        return slots;
    }

    public int capacityTokens() {
        return capacityTokens;
    }

    public int tokensPerCall() {
        return tokensPerCall;
    }

    /** Begins a new sequence in a slot, with its first token; discards the slot's previous sequence. */
    public void reset(int slot, int firstToken) {
        held.reset(slot, firstToken);
    }

    /**
     * Truncates a slot's sequence to its first tokens.
     *
     * @param tokens   that stay, at least 1 and at most {@link #position}
     * @param lastToken the last of these; the session keeps keys and values, not tokens
     */
    public void cut(int slot, int tokens, int lastToken) {
        held.cut(slot, tokens, lastToken);
    }

    /**
     * Appends known tokens to some sequences, many at once and without outputs: as if they had been forced, but without
     * the head, and a piece at a time instead of a token. The same pieces give the same keys and values, bit for bit,
     * independent of the other sequences in the call. Pieces split at other positions differ in the last bits.
     *
     * @param known at most one per slot
     * @throws IllegalArgumentException if a slot would outgrow its capacity, has no sequence or comes twice, or a token is outside
     *     the vocabulary; nothing is appended then
     */
    public void prefill(Weights weights, List<KnownTokens> known) {
        held.prefill(weights, known);
    }

    /**
     * Begins a sequence in a slot as a copy of the first tokens of another slot's, with their keys and values.
     *
     * @param tokens    at least 1 and at most the other's {@link #position}
     */
    public void copy(int from, int to, int tokens, int lastToken) {
        held.copy(held, from, to, tokens);
        held.set(to, tokens, lastToken);
    }

    /**
     * Copies of the keys and values of a slot's first tokens. The slot keeps its own.
     *
     * @param tokens at least 1 and fewer than {@link #position}: the last token of a sequence is fed by the step that
     * predicts the next one
     */
    public HeldPrefix take(int slot, int tokens) {
        held.requireHeld(slot, tokens);
        held.requireHeld(slot, tokens + 1);
        HeldRouting routing = held.routing();
        return new HeldPrefix(
                tokens, held.cache().take(slot, tokens), routing.isNeeded() ? routing.of(slot, tokens) : null);
    }

    /**
     * Begins a sequence in a slot with a prefix that was taken from this session or another one of the same shape and
     * precision; discards the slot's previous sequence.
     *
     * @param tokens    of the prefix, the first ones, at least 1
     * @param nextToken the token of the sequence after them
     */
    public void resume(int slot, HeldPrefix prefix, int tokens, int nextToken) {
        if (tokens < 1 || tokens > prefix.tokens() || tokens >= capacityTokens) {
            throw new IllegalArgumentException("slot " + slot + " is to continue from " + tokens
                    + " tokens of a prefix of " + prefix.tokens() + ", and one more: capacityTokens=" + capacityTokens);
        }
        if (prefix.parts().length != 2 * shape.layers()
                || prefix.parts()[0].length != prefix.tokens() * shape.kvHeads() * shape.headSize()) {
            throw new IllegalArgumentException("the prefix is of a model of another shape, not " + shape);
        }
        held.set(slot, tokens + 1, nextToken);
        held.cache().give(slot, prefix.parts(), prefix.tokens(), tokens);
        RoutedExperts routed = prefix.routing();
        if (routed != null) {
            held.routing().give(slot, routed, tokens);
        }
    }

    /** Returns the bytes of a {@link HeldPrefix} with this number of tokens. */
    public long prefixBytes(int tokens) {
        return 2L * shape.layers() * shape.kvHeads() * shape.headSize() * Float.BYTES * tokens;
    }

    /**
     * Experts used by a slot's tokens, except the last one, which is not fed yet; empty for a model without experts.
     *
     * @param tokens of the slot's sequence, at least 1 and at most {@link #position}
     */
    public Optional<RoutedExperts> routing(int slot, int tokens) {
        held.requireHeld(slot, tokens);
        HeldRouting routing = held.routing();
        return routing.isNeeded() ? Optional.of(routing.of(slot, tokens - 1)) : Optional.empty();
    }

    /** Tokens in the slot's sequence, 0 if it has none: the position at which the next one lands. */
    public int position(int slot) {
        return held.length(slot);
    }

    /**
     * Appends tokens to the active slots.
     *
     * @throws IllegalArgumentException if a slot would outgrow its capacity, has no sequence, or the input does not fit;
     *     nothing is appended then
     * @throws NonFiniteScoreException if the weights are broken; then reset the call's slots
     */
    public DecodeSteps advance(Weights weights, DecodeInput in) {
        held.requireShape(weights);
        Features features = check(in);
        int count = in.longest();
        int rows = rows(in);
        WeightedGraph graph = graph(features);
        try (Feeds feeds = feeds(in, count, features, rows);
                WeightedGraph.Weighted weighted = graph.with(weights);
                Session.Binding binding = weighted.session().bind()) {
            weighted.tensors().forEach(binding::input);
            feeds.map().forEach(binding::input);
            held.cache().bind(binding, rows);
            held.routing().bind(binding);
            results(features).forEach(name -> binding.output(name, Place.HOST));
            try (Session.Result result = binding.run()) {
                return take(in, result, features, rows);
            }
        } catch (OrtException e) {
            throw new InferenceException(
                    "ONNX Runtime failed to decode " + count + " steps of " + rows + " slots on device "
                            + engine.device() + ": " + e.getMessage(),
                    e);
        }
    }

    private static List<String> results(Features features) {
        List<String> results = new ArrayList<>(List.of(
                DecodeGraph.TOKENS, DecodeGraph.LOG_PROBS, DecodeGraph.TEMPERATURE_LOG_PROBS, DecodeGraph.ENTROPIES));
        if (features.recordsKept()) {
            results.addAll(List.of(DecodeGraph.KEPT_COUNTS, DecodeGraph.KEPT_IDS));
        }
        if (features.topLogProbs() > 0) {
            results.addAll(List.of(DecodeGraph.TOP_IDS, DecodeGraph.TOP_LOG_PROBS, DecodeGraph.TOP_REMAINDERS));
        }
        return results;
    }

    private DecodeSteps take(DecodeInput in, Session.Result result, Features features, int rows) {
        int[] steps = new int[rows];
        Arrays.setAll(steps, in::steps);
        DecodeSteps done = new DecodeSteps(
                steps,
                result.longs(DecodeGraph.TOKENS),
                result.floats(DecodeGraph.LOG_PROBS),
                result.floats(DecodeGraph.TEMPERATURE_LOG_PROBS),
                result.floats(DecodeGraph.ENTROPIES),
                features.recordsKept()
                        ? new StepKept(result.longs(DecodeGraph.KEPT_COUNTS), result.longs(DecodeGraph.KEPT_IDS))
                        : null,
                features.topLogProbs() > 0
                        ? new StepTop(
                                features.topLogProbs(),
                                result.longs(DecodeGraph.TOP_IDS),
                                result.floats(DecodeGraph.TOP_LOG_PROBS),
                                result.floats(DecodeGraph.TOP_REMAINDERS))
                        : null);
        refuseNonFinite(done);
        held.append(result, steps, done);
        return done;
    }

    /** Features that the active slots need together. */
    private Features check(DecodeInput in) {
        if (in.slots() != slots || in.longest() > tokensPerCall) {
            throw new IllegalArgumentException("the input has " + in.slots() + " slots and " + in.longest()
                    + " steps, the session " + slots + " slots and tokensPerCall=" + tokensPerCall);
        }
        if (in.longest() == 0) {
            throw new IllegalArgumentException("no slot is active in this call");
        }
        boolean truncates = false;
        boolean recordsKept = false;
        int top = 0;
        for (int slot = 0; slot < slots; slot++) {
            int steps = in.steps(slot);
            if (steps > 0) {
                held.requireRoom(slot, steps);
                Sampling sampling = in.sampling(slot);
                if (sampling.topLogProbs() > shape.vocabSize()) {
                    throw new IllegalArgumentException("slot " + slot + " asks for the " + sampling.topLogProbs()
                            + " likeliest tokens of a vocabulary of " + shape.vocabSize());
                }
                truncates |= sampling.truncates();
                recordsKept |= sampling.recordsKept();
                top = Math.max(top, sampling.topLogProbs());
            }
        }
        return new Features(truncates, recordsKept, top);
    }

    /** Number of slots up to the last active one; later ones cost nothing. */
    private int rows(DecodeInput in) {
        int last = slots - 1;
        while (in.steps(last) == 0) {
            last--;
        }
        return Math.min(slots, (last / ROW_STEP + 1) * ROW_STEP);
    }

    private Feeds feeds(DecodeInput in, int count, Features features, int rows) {
        long[] past = new long[rows];
        long[] writtenFrom = new long[rows];
        float[] inverseTemperature = new float[rows];
        float[] topK = new float[rows];
        float[] topP = new float[rows];
        float[] minP = new float[rows];
        float[] recordsKept = new float[rows];
        for (int slot = 0; slot < rows; slot++) {
            boolean active = in.steps(slot) > 0;
            Sampling sampling = active ? in.sampling(slot) : Sampling.of(1);
            // an idle slot computes from position 0, to stay within the tables; its results are ignored
            past[slot] = active ? held.length(slot) - 1 : 0;
            writtenFrom[slot] = active ? past[slot] : capacityTokens - 1;
            inverseTemperature[slot] = 1f / sampling.temperature();
            topK[slot] = sampling.topK() == 0 ? shape.vocabSize() : sampling.topK();
            topP[slot] = sampling.topP() == 1 ? KEEP_ALL : sampling.topP();
            minP[slot] = sampling.minP();
            recordsKept[slot] = sampling.recordsKept() ? 1f : 0f;
        }
        int half = shape.headSize() / 2;
        Feeds feeds = new Feeds()
                .longs(DecodeGraph.STEPS, new long[] {count})
                .longs(DecodeGraph.SLOTS, LongStream.range(0, rows).toArray(), rows)
                .longs(DecodeGraph.NUMBERS, LongStream.range(0, count).toArray(), count)
                .longs(DecodeGraph.WRITTEN_FROM, writtenFrom, rows)
                .longs(DecodeGraph.LAST_TOKEN, held.lastTokens(rows), rows)
                .longs(DecodeGraph.PAST, past, rows)
                .longs(DecodeGraph.FORCED, in.forcedTokens(count, rows, shape.vocabSize()), count, rows)
                .floats(DecodeGraph.UNIFORMS, in.uniforms(count, rows), count, rows)
                .floats(DecodeGraph.INVERSE_TEMPERATURE, inverseTemperature, rows, 1)
                .floats(DecodeGraph.COS, positions.cos(), positions.rows(), half)
                .floats(DecodeGraph.SIN, positions.sin(), positions.rows(), half);
        if (features.truncating()) {
            feeds.floats(DecodeGraph.TOP_K, topK, rows, 1)
                    .floats(DecodeGraph.TOP_P, topP, rows, 1)
                    .floats(DecodeGraph.MIN_P, minP, rows, 1);
        }
        if (features.recordsKept()) {
            feeds.floats(DecodeGraph.RECORDS_KEPT, recordsKept, rows, 1);
        }
        return feeds;
    }

    /** A graph with more features is compiled when they are first needed. */
    private WeightedGraph graph(Features features) {
        return compiled.computeIfAbsent(
                features,
                absent -> prepared.graph(
                        engine,
                        DecodeGraph.model(shape, capacityTokens, features, prepared.precision(), !engine.isInPlace()),
                        true));
    }

    private void refuseNonFinite(DecodeSteps done) {
        for (int slot = 0; slot < done.slots(); slot++) {
            for (int step = 0; step < done.steps(slot); step++) {
                if (!Float.isFinite(done.temperatureLogProb(step, slot))
                        || !Float.isFinite(done.entropy(step, slot))
                        || Float.isNaN(done.logProb(step, slot))) {
                    clear(done);
                    throw new NonFiniteScoreException(
                            slot,
                            "slot " + slot + ", position " + (held.length(slot) + step) + ": logProb="
                                    + done.temperatureLogProb(step, slot) + ", entropy=" + done.entropy(step, slot)
                                    + "; the weights hold values no softmax survives");
                }
            }
        }
    }

    /** Clears what a call wrote, so that neither the next sequences in its slots nor idle rows read it. */
    private void clear(DecodeSteps done) {
        for (int slot = 0; slot < done.slots(); slot++) {
            held.cache().clear(slot, done.steps(slot) > 0 ? 0 : capacityTokens - 1);
        }
    }

    @Override
    public void close() {
        held.close();
        try {
            prefillGraph.close();
            for (WeightedGraph graph : compiled.values()) {
                graph.close();
            }
        } catch (OrtException e) {
            throw new InferenceException("could not close the session: " + e.getMessage(), e);
        }
    }
}
