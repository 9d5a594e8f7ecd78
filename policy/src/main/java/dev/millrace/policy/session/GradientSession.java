package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import java.util.List;
import java.util.Optional;

/**
 * The gradient {@code d(sum_t c_t log pi(y_t) + sum_t e_t H_t + sum_t v_t V_t) / dW} of a batch by all weights, or
 * only by those of an adapter. The caller chooses the coefficients. The latter is the gradient of {@code W + scale * (B A)}. It
 * ignores that the values of an adapter or of weights may be rounded to a narrower type.
 *
 * <p>Where a sequence has kept tokens, {@code pi} is the softmax over these, and other tokens get no gradient.
 *
 * <p>Any objective over log-probs is a set of such coefficients: differentiate it by each log-prob (entropy, value) in
 * plain Java. V is the value head's output; without one v is not read. Micro-batches go through one layer after the
 * other and back, and each layer adds its part in the gradient's own memory, without a second copy. Additions have a
 * fixed order, so that the same call gives the same bits for any number of threads. Thread-safe; the weights are read
 * in place and must not change during a call.
 */
public final class GradientSession implements AutoCloseable {
    final Engine engine;
    final DecoderShape shape;
    private final List<TensorSpec> trained;
    private final Optional<LoraShape> lora;
    final GradientGraphs graphs;
    final LengthTables tables;
    private final PassMemory memory;
    private final RowLimit limit;
    private final int mostRows;

    /** @param tokenBudget padded tokens per micro-batch: bounds memory, and decides the order of summation */
    public GradientSession(Engine engine, DecoderShape shape, int tokenBudget) {
        this(engine, shape, tokenBudget, LogitsMemory.DEFAULT);
    }

    /** @param logits likewise */
    public GradientSession(Engine engine, DecoderShape shape, int tokenBudget, LogitsMemory logits) {
        this(engine, shape, Optional.empty(), MicrobatchLimit.ofTokens(tokenBudget), logits, Activations.KEPT);
    }

    /**
     * @param lora shape of the adapter, the only tensors differentiated, for weights with such an adapter; empty for
     *     all weights
     * @param limit limit of a micro-batch: bounds memory, and decides the order of summation
     * @param logits      likewise
     * @param activations which forward values the backward pass keeps or recomputes
     */
    public GradientSession(
            Engine engine,
            DecoderShape shape,
            Optional<LoraShape> lora,
            MicrobatchLimit limit,
            LogitsMemory logits,
            Activations activations) {
        this.engine = engine;
        this.shape = shape;
        this.lora = lora;
        this.trained = lora.map(low -> low.tensors(shape)).orElseGet(shape::tensors);
        this.graphs = new GradientGraphs(engine, shape, lora, activations);
        this.tables = new LengthTables(shape);
        this.mostRows = logits.gradientRows(shape);
        this.memory = new PassMemory(
                shape, graphs.layer(), graphs.head(Vocabulary.WHOLE).gradient(), logits);
        this.limit = limit.rows(memory::bytes);
    }

    /**
     * Adds the gradient of a batch to {@code into}, and returns the scores of the forward pass.
     *
     * @param temperatures         one per sequence, above 0; log-probs and entropies are those after temperature
     * @param logProbCoefficients  c, one per packed token; 0 for a token without loss
     * @param into                 of what is trained; partly added to if the call fails
     * @throws java.util.concurrent.CancellationException if the thread is interrupted, checked between layers; the
     *     flag stays set
     * @throws NonFiniteScoreException naming sequence and token
     * @throws PassMemoryException if a sequence alone takes more memory than a micro-batch may
     */
    public TokenScores accumulate(
            Weights weights,
            SequenceBatch batch,
            float[] temperatures,
            float[] logProbCoefficients,
            float[] entropyCoefficients,
            Gradients into) {
        return accumulate(
                weights, new GradientPass.Part(batch, temperatures, logProbCoefficients, entropyCoefficients), into);
    }

    /** The same of a batch with all its coefficients. */
    public TokenScores accumulate(Weights weights, GradientPass.Part part, Gradients into) {
        try (GradientPass pass = begin(weights, List.of(part), into)) {
            for (int piece = 0; piece < pass.pieces(); piece++) {
                pass.run(piece);
            }
            pass.finish();
            return pass.scores(0);
        }
    }

    /**
     * The same of several batches, in pieces that may be run by several threads.
     *
     * @param into as above; not to be read before {@link GradientPass#finish}
     */
    public GradientPass begin(Weights weights, List<GradientPass.Part> parts, Gradients into) {
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
        for (GradientPass.Part part : parts) {
            SequenceRunner.check(shape, weights, part.batch(), part.temperatures());
            requireFinite(part.batch(), part.logProbCoefficients(), "logProbCoefficients");
            requireFinite(part.batch(), part.entropyCoefficients(), "entropyCoefficients");
            requireFinite(part.batch(), part.valueCoefficients(), "valueCoefficients");
        }
        return new GradientPass(this, weights, into, parts);
    }

    List<MicroBatch> plan(SequenceBatch batch) {
        return MicroBatch.plan(batch, limit, shape).stream()
                .map(micro -> micro.inChunks(mostRows))
                .toList();
    }

    /** Bytes that a micro-batch takes in addition to weights and gradient. */
    long estimate(MicroBatch micro) {
        return memory.bytes(micro.sequences().length, micro.length());
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

    @Override
    public void close() {
        graphs.close();
    }
}
