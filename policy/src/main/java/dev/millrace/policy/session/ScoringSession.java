package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.SequenceGraph;
import dev.millrace.policy.weights.Weights;
import java.util.Map;
import java.util.Set;

/**
 * Log-probs of given tokens: {@code log softmax(logits / temperature)[token]}, with entropy and sum of squared
 * probabilities; over the kept tokens alone where a sequence has them.
 *
 * <p>A sequence's results depend on its own tokens, its temperature and the weights, and not on what shares the batch: bit
 * for bit with one thread inside an operator. Safe for several threads at once; each call runs on its caller's thread. The
 * weights are read in place and must not change during a call.
 */
public final class ScoringSession implements AutoCloseable {
    static final Set<String> OUTPUTS =
            Set.of(SequenceGraph.LOG_PROBS, SequenceGraph.ENTROPIES, SequenceGraph.SUM_SQUARED_PROBS);
    private final SequenceRunner runner;

    /** @param tokenBudget padded tokens per micro-batch: bounds the memory of a call; one longer sequence goes alone */
    public ScoringSession(Engine engine, DecoderShape shape, int tokenBudget) {
        this.runner =
                new SequenceRunner(engine, shape, tokenBudget, vocabulary -> SequenceGraph.scoring(shape, vocabulary));
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
        return runner.run(weights, batch, temperatures, (micro, feeds) -> {}, OUTPUTS, Map.of(), (micro, result) -> {});
    }

    @Override
    public void close() {
        runner.close();
    }
}
