package dev.millrace.policy.session;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.SequenceGraph;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * The gradient {@code d(sum_t c_t log pi(y_t) + sum_t e_t H_t) / dW} of a batch, for coefficients of the caller's choice, by all weights or by those of
 * an adapter alone. The latter is the gradient of {@code W + scale * (B A)}: that an adapter's values may be rounded to a narrower type
 * is passed over, as it is of weights.
 *
 * <p>Where a sequence has kept tokens, {@code pi} is the softmax over these, and what was not kept gets no gradient.
 *
 * <p>Any objective over log-probs is a pair of such coefficients: differentiate it by each log-prob (and entropy) in plain
 * Java. Micro-batches go in a fixed order through one thread, so that the same call gives the same bits. Not thread-safe:
 * one owner; the weights are read in place and must not change during a call.
 */
public final class GradientSession implements AutoCloseable {
    private static final int CHUNK = 4096;

    private final DecoderShape shape;
    private final List<TensorSpec> trained;
    private final Optional<LoraShape> lora;
    private final SequenceRunner runner;
    private final TensorSet partial;
    private final Feeds pinned;
    private final Set<String> outputs = new HashSet<>(ScoringSession.OUTPUTS);
    private final float[] chunk = new float[CHUNK];

    /** @param tokenBudget padded tokens per micro-batch: bounds memory, and decides the order of summation */
    public GradientSession(Engine engine, DecoderShape shape, int tokenBudget) {
        this(engine, shape, tokenBudget, LogitsMemory.DEFAULT);
    }

    /** @param logits likewise */
    public GradientSession(Engine engine, DecoderShape shape, int tokenBudget, LogitsMemory logits) {
        this(engine, shape, Optional.empty(), tokenBudget, logits);
    }

    /** @param lora of adapters by which alone is differentiated, of weights that have such a one; empty for all weights */
    public GradientSession(
            Engine engine, DecoderShape shape, Optional<LoraShape> lora, int tokenBudget, LogitsMemory logits) {
        this.shape = shape;
        this.lora = lora;
        this.trained = lora.map(low -> low.tensors(shape)).orElseGet(shape::tensors);
        this.runner = new SequenceRunner(
                engine,
                shape,
                tokenBudget,
                logits.gradientRows(shape),
                (vocabulary, rows) -> lora.isPresent()
                        ? SequenceGraph.gradient(shape, lora.get(), vocabulary, rows)
                        : SequenceGraph.gradient(shape, vocabulary, rows));
        this.partial = new TensorSet(lora.isPresent() ? trained : SequenceGraph.differentiated(shape));
        this.pinned = new Feeds(engine.environment()).set(partial, SequenceGraph.gradientOf(""));
        if (lora.isEmpty()) {
            this.outputs.add(SequenceGraph.EMBEDDED_GRADIENT);
        }
    }

    /**
     * Adds the gradient of a batch to {@code into}, and returns the scores the forward pass found on the way.
     *
     * @param temperatures         one per sequence, above 0; log-probs and entropies are those after temperature
     * @param logProbCoefficients  c, one per packed token; 0 for a token without loss
     * @param entropyCoefficients  e, one per packed token
     * @param into                 of what is trained; partly added to if the call fails
     * @throws java.util.concurrent.CancellationException if the thread is interrupted, checked between micro-batches; the
     *     flag stays set
     * @throws NonFiniteScoreException naming sequence and token
     */
    public TokenScores accumulate(
            Weights weights,
            SequenceBatch batch,
            float[] temperatures,
            float[] logProbCoefficients,
            float[] entropyCoefficients,
            Gradients into) {
        if (!into.specs().equals(trained)) {
            throw new IllegalArgumentException("these gradients are of another shape: they have "
                    + into.specs().size() + " tensors, and " + trained.size() + " are trained of " + shape);
        }
        if (!weights.adapter().map(LoraAdapter::shape).equals(lora)) {
            throw new IllegalArgumentException("the weights have "
                    + weights.adapter()
                            .map(has -> "an adapter of " + has.shape())
                            .orElse("no adapter")
                    + ", and differentiated is by "
                    + lora.map(low -> "one of " + low).orElse("all weights"));
        }
        requireFinite(batch, logProbCoefficients, "logProbCoefficients");
        requireFinite(batch, entropyCoefficients, "entropyCoefficients");
        return runner.run(
                weights,
                batch,
                temperatures,
                (micro, feeds) -> {
                    feeds.floats(SequenceGraph.LOG_PROB_COEFFICIENTS, micro.pick(logProbCoefficients), micro.rowCount())
                            .floats(
                                    SequenceGraph.ENTROPY_COEFFICIENTS,
                                    micro.pick(entropyCoefficients),
                                    micro.rowCount());
                    if (lora.isPresent()) {
                        feeds.set(weights.trained().tensors(), "");
                    }
                },
                outputs,
                pinned.map(),
                (micro, result) -> add(micro, result, into));
    }

    static void requireFinite(SequenceBatch batch, float[] coefficients, String name) {
        if (coefficients.length != batch.scoredCount()) {
            throw new IllegalArgumentException("one value per scored token: " + name + ".length=" + coefficients.length
                    + ", scored tokens=" + batch.scoredCount());
        }
        for (int i = 0; i < coefficients.length; i++) {
            if (!Float.isFinite(coefficients[i])) {
                throw new IllegalArgumentException(
                        name + " must be finite: " + coefficients[i] + " at packed token " + i);
            }
        }
    }

    private void add(MicroBatch micro, OrtSession.Result result, Gradients into) throws OrtException {
        for (TensorSpec spec : partial.specs()) {
            addTo(into.tensor(spec.name()), partial.tensor(spec.name()));
        }
        if (lora.isEmpty()) {
            addEmbedded(
                    micro,
                    SequenceRunner.floats(result, SequenceGraph.EMBEDDED_GRADIENT),
                    into.tensor(SequenceGraph.embedding()));
        }
    }

    private void addTo(float[] sum, FloatBuffer added) {
        for (int from = 0; from < sum.length; from += CHUNK) {
            int count = Math.min(CHUNK, sum.length - from);
            added.get(chunk, 0, count);
            for (int i = 0; i < count; i++) {
                sum[from + i] += chunk[i];
            }
        }
    }

    /**
     * Adds each input token's row to its embedding's, in the order of the tokens: a scatter inside the graph would sum in an
     * order of its own choosing on a GPU. Padding receives no gradient and is left out.
     */
    private void addEmbedded(MicroBatch micro, float[] rows, float[] embedding) {
        int width = shape.hiddenSize();
        SequenceBatch batch = micro.batch();
        for (int row = 0; row < micro.sequences().length; row++) {
            int sequence = micro.sequences()[row];
            for (int t = 0; t < batch.length(sequence) - 1; t++) {
                int from = (row * micro.length() + t) * width;
                int to = batch.token(sequence, t) * width;
                for (int i = 0; i < width; i++) {
                    embedding[to + i] += rows[from + i];
                }
            }
        }
    }

    @Override
    public void close() {
        pinned.close();
        runner.close();
    }
}
