package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.RoutingPorts;
import dev.millrace.policy.decoder.SequenceGraph;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Log-probs of given tokens: {@code log softmax(logits / temperature)[token]}, with entropy and sum of squared
 * probabilities; over the kept tokens alone where a sequence has them.
 *
 * <p>A sequence's results depend on its own tokens, its temperature and the weights, and not on what shares the batch: bit
 * for bit with one thread inside an operator. Safe for several threads at once; each call runs on its caller's thread. The
 * weights are read in place and must not change during a call.
 */
public final class ScoringSession implements AutoCloseable {
    /** Below any log-prob of a softmax: marks a row's padding. */
    private static final float IMPOSSIBLE = -1e8f;

    private final Engine engine;
    private final DecoderShape shape;
    private final int tokenBudget;
    private final int mostRows;
    private final SequenceRunner runner;
    private final Map<Integer, SequenceRunner> entryRunners = new ConcurrentHashMap<>();

    /** Graphs of a shape, with additional outputs if needed. */
    static Set<String> outputs(DecoderShape shape, String... more) {
        Set<String> outputs = new HashSet<>(Set.of(more));
        outputs.addAll(Set.of(SequenceGraph.LOG_PROBS, SequenceGraph.ENTROPIES, SequenceGraph.SUM_SQUARED_PROBS));
        if (shape.valueHead()) {
            outputs.add(SequenceGraph.VALUES);
        }
        return outputs;
    }

    /** @param tokenBudget padded tokens per micro-batch: bounds the memory of a call; one longer sequence goes alone */
    public ScoringSession(Engine engine, DecoderShape shape, int tokenBudget) {
        this(engine, shape, tokenBudget, LogitsMemory.DEFAULT);
    }

    /** @param logits bounds the memory of a call, too */
    public ScoringSession(Engine engine, DecoderShape shape, int tokenBudget, LogitsMemory logits) {
        this.engine = engine;
        this.shape = shape;
        this.tokenBudget = tokenBudget;
        this.mostRows = logits.scoringRows(shape);
        this.runner = new SequenceRunner(
                engine,
                shape,
                tokenBudget,
                mostRows,
                (vocabulary, rows) -> SequenceGraph.scoring(shape, vocabulary, rows));
    }

    /**
     * Scores a batch.
     *
     * @param temperatures one per sequence, above 0
     * @return fresh arrays, packed as the batch says
     * @throws java.util.concurrent.CancellationException if the thread is interrupted, checked between micro-batches; the
     *     flag stays set
     * @throws NonFiniteScoreException naming sequence and token
     */
    public TokenScores score(Weights weights, SequenceBatch batch, float[] temperatures) {
        return runner.run(weights, batch, temperatures, (micro, feeds) -> {}, outputs(shape), (micro, result) -> {});
    }

    /**
     * Scores a batch, and k further tokens at each of its scored positions. The first call with a k compiles a graph.
     *
     * @param entries per sequence k token ids for each scored token, one token after the other; ids of one token must
     *     differ, since results for repeated ids are meaningless
     * @throws IllegalArgumentException if the number of ids is wrong, or one is outside of the vocabulary
     */
    public EntryScores scoreEntries(
            Weights weights, SequenceBatch batch, float[] temperatures, int[][] entries, int k) {
        requireEntries(batch, entries, k);
        float[] logProbs = new float[Math.multiplyExact(batch.scoredCount(), k)];
        float[] remainders = new float[batch.scoredCount()];
        TokenScores scores = entryRunners
                .computeIfAbsent(
                        k,
                        absent -> new SequenceRunner(
                                engine,
                                shape,
                                tokenBudget,
                                mostRows,
                                (vocabulary, rows) ->
                                        SequenceGraph.scoringEntries(shape, vocabulary, rows, k, !engine.isInPlace())))
                .run(
                        weights,
                        batch,
                        temperatures,
                        (micro, feeds) ->
                                feeds.longs(SequenceGraph.ENTRIES, micro.entries(entries, k), micro.rowCount(), k),
                        outputs(shape, SequenceGraph.ENTRY_LOG_PROBS, SequenceGraph.ENTRY_REMAINDERS),
                        (micro, result) -> {
                            micro.putRows(result.floats(SequenceGraph.ENTRY_LOG_PROBS), k, logProbs);
                            micro.put(result.floats(SequenceGraph.ENTRY_REMAINDERS), remainders);
                        });
        for (int i = 0; i < logProbs.length; i++) {
            logProbs[i] = logProbs[i] < IMPOSSIBLE ? Float.NEGATIVE_INFINITY : logProbs[i];
        }
        return new EntryScores(scores, k, logProbs, remainders);
    }

    /** Scores of a batch and routing of its tokens. */
    public record Routed(TokenScores scores, RoutedExperts[] routing) {}

    /**
     * Scores a batch and records the routing of its tokens.
     *
     * @throws IllegalArgumentException if the model has no experts
     */
    public Routed scoreRouted(Weights weights, SequenceBatch batch, float[] temperatures) {
        if (!shape.traits().experts().present()) {
            throw new IllegalArgumentException("the model has no experts, so there is no routing to note");
        }
        Set<String> outputs = outputs(shape);
        for (int layer = 0; layer < shape.layers(); layer++) {
            outputs.add(RoutingPorts.experts(layer));
            outputs.add(RoutingPorts.weights(layer));
        }
        RoutedExperts[] routing = new RoutedExperts[batch.sequenceCount()];
        Arrays.setAll(routing, s -> RoutedExperts.unknown(shape, batch.length(s) - 1));
        TokenScores scores = runner.run(
                weights,
                batch,
                temperatures,
                (micro, feeds) -> {},
                outputs,
                (micro, result) -> takeRouting(micro, result, routing));
        return new Routed(scores, routing);
    }

    private void takeRouting(MicroBatch micro, Session.Result result, RoutedExperts[] routing) {
        for (int layer = 0; layer < shape.layers(); layer++) {
            RoutingOutput of = RoutingOutput.read(result, layer, shape);
            for (int row = 0; row < micro.sequences().length; row++) {
                RoutedExperts into = routing[micro.sequences()[row]];
                for (int t = 0; t < into.tokens(); t++) {
                    of.put(row * micro.length() + t, into, t, layer);
                }
            }
        }
    }

    private void requireEntries(SequenceBatch batch, int[][] entries, int k) {
        if (k < 1 || k > shape.vocabSize() || entries.length != batch.sequenceCount()) {
            throw new IllegalArgumentException("k must be at least 1 and at most the vocabulary of " + shape.vocabSize()
                    + ", with the entries of " + batch.sequenceCount() + " sequences: k=" + k + ", sequences="
                    + entries.length);
        }
        for (int s = 0; s < entries.length; s++) {
            int scored = batch.length(s) - batch.firstScored(s);
            if (entries[s].length != (long) scored * k) {
                throw new IllegalArgumentException("k=" + k + " entries per scored token: " + entries[s].length
                        + " for " + scored + " of sequence " + s);
            }
            for (int id : entries[s]) {
                if (id < 0 || id >= shape.vocabSize()) {
                    throw new IllegalArgumentException(
                            "entry " + id + " of sequence " + s + " is outside the vocabulary of " + shape.vocabSize());
                }
            }
        }
    }

    @Override
    public void close() {
        runner.close();
        entryRunners.values().forEach(SequenceRunner::close);
    }
}
