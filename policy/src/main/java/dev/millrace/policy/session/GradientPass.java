package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One gradient, computed in pieces: micro-batches of several batches in turns. Each piece runs forward and backward
 * independently and adds to a layer's gradient after the earlier pieces. Several threads may run pieces at once; the
 * sum has the same bits as a sequential run.
 *
 * <p>Pieces must be begun in their order, by any threads, each once; then one thread calls {@link #finish}.
 */
public final class GradientPass implements AutoCloseable {
    final GradientSession session;
    final Weights weights;
    private final List<Part> parts;
    private final List<TokenScores> scores;
    private final List<Piece> pieces = new ArrayList<>();
    /** Parts are the layers, then the head, then the embedding. */
    final AdditionOrder order;
    /** Null where the embedding is not trained. */
    final @Nullable EmbeddingRows embedded;

    private final List<Engine.Bound> read = new ArrayList<>();
    private final DeviceMemory.@Nullable Copy onDevice;
    private final Map<String, Tensor> sums;
    /** Weights by their names, and sums of gradients. */
    final Map<String, Tensor> fixed = new HashMap<>();

    private boolean finished; // then the device's sums are the gradient

    /** A batch with its coefficients, as {@link GradientSession#accumulate} takes them. */
    public record Part(
            SequenceBatch batch,
            float[] temperatures,
            float[] logProbCoefficients,
            float[] entropyCoefficients,
            float[] valueCoefficients) {

        /** With no loss of values. */
        public Part(
                SequenceBatch batch, float[] temperatures, float[] logProbCoefficients, float[] entropyCoefficients) {
            this(batch, temperatures, logProbCoefficients, entropyCoefficients, new float[batch.scoredCount()]);
        }
    }

    private record Piece(int part, MicroBatch micro) {}

    GradientPass(GradientSession session, Weights weights, Gradients into, List<Part> parts) {
        Engine engine = session.engine;
        DecoderShape shape = session.shape;
        this.session = session;
        this.weights = weights;
        this.parts = List.copyOf(parts);
        this.scores = parts.stream()
                .map(part -> TokenScores.allocate(part.batch().scoredCount(), shape))
                .toList();
        this.order = new AdditionOrder(shape.layers() + 2);
        List<List<MicroBatch>> plans =
                parts.stream().map(part -> session.plan(part.batch())).toList();
        int longest = plans.stream().mapToInt(List::size).max().orElse(0);
        for (int i = 0; i < longest; i++) {
            for (int part = 0; part < parts.size(); part++) {
                if (i < plans.get(part).size()) {
                    pieces.add(new Piece(part, plans.get(part).get(i)));
                }
            }
        }
        this.read.add(engine.bound(weights.tensors()));
        if (weights.adapter().isPresent()) {
            this.read.add(engine.bound(weights.trained().tensors()));
        }
        this.read.forEach(bound -> fixed.putAll(bound.tensors()));
        this.onDevice = engine.isInPlace() ? null : engine.memory().forWriting(into.tensors(), into.isZero());
        this.sums = onDevice == null ? inPlace(into) : onDevice.tensors();
        this.sums.forEach((name, tensor) -> fixed.put(LayerGradient.sumOf(name), tensor));
        this.embedded = weights.adapter().isPresent()
                ? null
                : onDevice == null
                        ? new EmbeddingRows.OnHost(shape, into)
                        : new EmbeddingRows.OnDevice(shape, session.graphs.embeddingSums(), engine.place(), sums);
    }

    private static Map<String, Tensor> inPlace(Gradients into) {
        Feeds sums = new Feeds();
        into.specs().forEach(spec -> sums.floats(spec.name(), into.tensor(spec.name()), spec.dimsArray()));
        return sums.map();
    }

    public int pieces() {
        return pieces.size();
    }

    /** The batch that a piece is of. */
    public int part(int piece) {
        return pieces.get(piece).part();
    }

    /**
     * Runs a piece forward and backward.
     *
     * @throws java.util.concurrent.CancellationException if the thread is interrupted, or another piece failed
     * @throws NonFiniteScoreException naming sequence and token
     */
    public void run(int piece) {
        Piece of = pieces.get(piece);
        try {
            new MicroBatchGradient(this, piece, of.micro(), parts.get(of.part()), scores.get(of.part())).run();
        } catch (RuntimeException | Error e) {
            order.fail();
            throw e;
        }
    }

    /** Completes the sum; after all pieces. */
    public void finish() {
        if (embedded != null) {
            embedded.addToGradient();
        }
        if (onDevice != null) {
            onDevice.own();
            finished = true;
        }
    }

    /** The scores of a batch, after its pieces. */
    public TokenScores scores(int part) {
        return scores.get(part);
    }

    /** Frees the pieces' inputs, after the last has ended. */
    @Override
    public void close() {
        if (embedded != null) {
            embedded.close();
        }
        if (onDevice == null) {
            sums.values().forEach(Tensor::close);
        } else if (!finished) {
            onDevice.close();
        }
        read.forEach(Engine.Bound::close);
    }
}
