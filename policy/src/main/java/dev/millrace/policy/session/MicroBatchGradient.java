package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.HeadGradient;
import dev.millrace.policy.decoder.LayerGradient;
import dev.millrace.policy.decoder.RoutingPorts;
import dev.millrace.policy.decoder.SequenceGraph;
import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import dev.millrace.policy.ort.OrtException;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.MatrixRows;
import java.nio.FloatBuffer;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;

/** Runs one micro-batch forward through the layers and the head, and backward. Used once, by one thread. */
final class MicroBatchGradient {
    private final GradientPass pass;
    private final Engine engine;
    private final DecoderShape shape;
    private final GradientGraphs graphs;
    private final LengthTables tables;
    private final AdditionOrder order;
    private final int ticket;
    private final MicroBatch micro;
    private final GradientPass.Part part;
    private final TokenScores scores;

    /** Kept values of each computed layer, the lowest last. */
    private final Deque<Session.Result> made = new ArrayDeque<>();

    MicroBatchGradient(GradientPass pass, int ticket, MicroBatch micro, GradientPass.Part part, TokenScores scores) {
        this.pass = pass;
        this.engine = pass.session.engine;
        this.shape = pass.session.shape;
        this.graphs = pass.session.graphs;
        this.tables = pass.session.tables;
        this.order = pass.order;
        this.ticket = ticket;
        this.micro = micro;
        this.part = part;
        this.scores = scores;
    }

    void run() {
        try (Feeds common = new Feeds();
                Feeds ends = new Feeds()) {
            common.longs(SequenceGraph.POSITIONS, micro.positions(), micro.dims());
            tables.feedAngles(micro.length(), common);
            tables.feedMasks(micro.length(), common);
            micro.feedReplayed(shape, common);
            if (engine.isInPlace()) {
                ends.floats(LayerGradient.INPUT, looked(), tokens(), shape.hiddenSize());
                Tensor first = Objects.requireNonNull(ends.map().get(LayerGradient.INPUT));
                forward(common.map(), first);
                ends.floats(LayerGradient.OUTPUT_GRADIENT, head(), tokens(), shape.hiddenSize());
                backward(common.map(), first, Objects.requireNonNull(ends.map().get(LayerGradient.OUTPUT_GRADIENT)));
            } else {
                try (Session.Result looked = lookedUpThere();
                        Tensor flows = engine.memory()
                                .zeros(tokens(), shape.hiddenSize(), 1, 1)
                                .shaped(tokens(), shape.hiddenSize())) {
                    Tensor first = looked.tensor(LayerGradient.INPUT);
                    forward(common.map(), first);
                    head(flows);
                    backward(common.map(), first, flows);
                }
            }
        } catch (OrtException e) {
            throw new InferenceException(
                    "ONNX Runtime failed on " + micro.sequences().length + " sequences of " + micro.length()
                            + " tokens on device " + engine.device() + ", which take "
                            + (pass.session.estimate(micro) >> 20) + " MiB by the estimate: " + e.getMessage(),
                    e);
        } finally {
            made.forEach(Session.Result::close);
        }
    }

    private int tokens() {
        return micro.sequences().length * micro.length();
    }

    /** The rows of the embedding that the tokens look up. */
    private FloatBuffer looked() {
        int width = shape.hiddenSize();
        MatrixRows embedding = new MatrixRows(pass.weights.tensors()::values, shape.embedding());
        FloatBuffer rows = PositionTables.direct(Math.multiplyExact(tokens(), width));
        float[] row = new float[width];
        for (long token : micro.tokens()) {
            embedding.get(Math.toIntExact(token), row);
            rows.put(row);
        }
        return rows.flip();
    }

    /** The same rows, on the device. */
    private Session.Result lookedUpThere() {
        try (Feeds feeds = new Feeds().longs(SequenceGraph.TOKENS, micro.tokens(), tokens())) {
            Map<String, Tensor> all = new HashMap<>(feeds.map());
            shape.embedding().pieces().forEach(piece -> all.put(piece.name(), fixed(piece.name())));
            return graphs.lookup().run(all, List.of(LayerGradient.INPUT), Map.of(), engine.place());
        }
    }

    private void forward(Map<String, Tensor> common, Tensor first) {
        Tensor x = first;
        for (int layer = 0; layer < shape.layers(); layer++) {
            requireWanted();
            Map<String, Tensor> feeds =
                    feeds(graphs.layer().forward().inputs(), layer, common, Map.of(LayerGradient.INPUT, x));
            made.push(graphs.forward().run(feeds, graphs.layer().forward().outputs(), Map.of(), engine.place()));
            x = tensor(made.getFirst(), LayerGradient.OUTPUT);
        }
    }

    /** Scores, adds to the head's gradient, and returns the gradient of the last layer's output. */
    private FloatBuffer head() {
        int width = shape.hiddenSize();
        FloatBuffer gradient = PositionTables.direct(Math.multiplyExact(tokens(), width));
        long[] rows = micro.rows();
        int wanted = micro.scoredCount();
        head(Map.of(), Map.of(), new String[] {HeadGradient.ROW_GRADIENT}, (result, from) -> {
            float[] ofRows = result.floats(HeadGradient.ROW_GRADIENT);
            for (int row = from; row < Math.min(from + micro.rowsAtOnce(), wanted); row++) {
                gradient.put(Math.multiplyExact((int) rows[row], width), ofRows, (row - from) * width, width);
            }
        });
        return gradient;
    }

    /** The same, added to the gradient on the device. */
    private void head(Tensor flows) {
        head(
                Map.of(HeadGradient.SUM, flows),
                Map.of(LayerGradient.INPUT_GRADIENT, flows),
                new String[0],
                (result, from) -> {});
    }

    private interface ChunkReader {
        void read(Session.Result result, int from);
    }

    /**
     * @param fed inputs in addition to the head's own
     * @param more outputs in addition to the scores
     */
    private void head(Map<String, Tensor> fed, Map<String, Tensor> written, String[] more, ChunkReader reader) {
        GradientGraphs.Head head = graphs.head(micro.vocabulary());
        boolean adds = !head.gradient().trained().isEmpty();
        Map<String, Tensor> pinned = sums(head.gradient().trained(), 0);
        pinned.putAll(written);
        Set<String> outputs = ScoringSession.outputs(shape, more);
        long[] rows = micro.rows();
        int atOnce = micro.rowsAtOnce();
        HeadInputs inputs = new HeadInputs(rows);
        Map<String, Tensor> flows = new HashMap<>(fed);
        flows.put(LayerGradient.INPUT, tensor(made.getFirst(), LayerGradient.OUTPUT));
        TokenScores found = TokenScores.allocate(rows.length, shape);
        if (adds) {
            order.await(shape.layers(), ticket);
        }
        for (int from = 0; from < rows.length; from += atOnce) {
            requireWanted();
            try (Feeds chunk = inputs.chunk(from, from + atOnce);
                    Session.Result result = head.session()
                            .run(
                                    feeds(head.gradient().graph().inputs(), 0, chunk.map(), flows),
                                    outputs,
                                    pinned,
                                    Place.HOST)) {
                put(result, SequenceGraph.LOG_PROBS, from, found.logProbs());
                put(result, SequenceGraph.ENTROPIES, from, found.entropies());
                put(result, SequenceGraph.SUM_SQUARED_PROBS, from, found.sumSquaredProbs());
                if (shape.valueHead()) {
                    put(result, SequenceGraph.VALUES, from, found.values());
                }
                reader.read(result, from);
            }
        }
        if (adds) {
            order.added(shape.layers());
        }
        micro.put(found.logProbs(), scores.logProbs());
        micro.put(found.entropies(), scores.entropies());
        micro.put(found.sumSquaredProbs(), scores.sumSquaredProbs());
        if (shape.valueHead()) {
            micro.put(found.values(), scores.values());
        }
        micro.refuseNonFinite(scores);
    }

    /** Inputs of the head for all rows, split into chunks. */
    private final class HeadInputs {
        private final long[] rows;
        private final long[] targets = micro.targets();
        private final float[] inverseTemperatures = micro.inverseTemperatures(part.temperatures());
        private final float[] logProbCoefficients = micro.pick(part.logProbCoefficients());
        private final float[] entropyCoefficients = micro.pick(part.entropyCoefficients());
        private final float[] valueCoefficients = micro.pick(part.valueCoefficients());
        private final boolean isCut = micro.vocabulary() == Vocabulary.CUT;
        private final long[] kept = isCut ? micro.keptIds() : new long[0];
        private final float[] keptMask = isCut ? micro.keptMask() : new float[0];

        HeadInputs(long[] rows) {
            this.rows = rows;
        }

        Feeds chunk(int from, int to) {
            int count = to - from;
            Feeds chunk = new Feeds()
                    .longs(SequenceGraph.ROWS, Arrays.copyOfRange(rows, from, to), count)
                    .longs(SequenceGraph.TARGETS, Arrays.copyOfRange(targets, from, to), count)
                    .floats(
                            SequenceGraph.INVERSE_TEMPERATURE,
                            Arrays.copyOfRange(inverseTemperatures, from, to),
                            count,
                            1)
                    .floats(
                            SequenceGraph.LOG_PROB_COEFFICIENTS,
                            Arrays.copyOfRange(logProbCoefficients, from, to),
                            count)
                    .floats(
                            SequenceGraph.ENTROPY_COEFFICIENTS,
                            Arrays.copyOfRange(entropyCoefficients, from, to),
                            count);
            if (shape.valueHead()) {
                chunk.floats(SequenceGraph.VALUE_COEFFICIENTS, Arrays.copyOfRange(valueCoefficients, from, to), count);
            }
            int width = micro.width();
            return isCut
                    ? chunk.longs(SequenceGraph.KEPT, Arrays.copyOfRange(kept, from * width, to * width), count, width)
                            .floats(
                                    SequenceGraph.KEPT_MASK,
                                    Arrays.copyOfRange(keptMask, from * width, to * width),
                                    count,
                                    width)
                    : chunk;
        }
    }

    private static void put(Session.Result result, String output, int at, float[] into) {
        float[] values = result.floats(output);
        System.arraycopy(values, 0, into, at, values.length);
    }

    private void backward(Map<String, Tensor> common, Tensor first, Tensor last) {
        LayerGradient layers = graphs.layer();
        Session.Result above = null;
        Tensor dy = last;
        try {
            for (int layer = shape.layers() - 1; layer >= 0; layer--) {
                requireWanted();
                try (Session.Result own = made.pop()) {
                    Map<String, Tensor> flows = new HashMap<>();
                    for (String kept : layers.kept()) {
                        flows.put(kept, tensor(own, kept));
                    }
                    flows.put(LayerGradient.INPUT, layer == 0 ? first : tensor(made.getFirst(), LayerGradient.OUTPUT));
                    flows.put(LayerGradient.OUTPUT_GRADIENT, dy);
                    order.await(layer, ticket);
                    Session.Result result = graphs.backward()
                            .run(
                                    feeds(layers.backward().inputs(), layer, common, flows),
                                    Set.of(LayerGradient.INPUT_GRADIENT),
                                    sums(layers.trained(), layer),
                                    engine.place());
                    order.added(layer);
                    if (above != null) {
                        above.close();
                    }
                    above = result;
                    dy = tensor(result, LayerGradient.INPUT_GRADIENT);
                }
            }
            EmbeddingRows embedded = pass.embedded;
            if (embedded != null && above != null) {
                order.await(shape.layers() + 1, ticket);
                boolean kept = embedded.add(micro, above);
                order.added(shape.layers() + 1);
                above = kept ? null : above;
            }
        } finally {
            if (above != null) {
                above.close();
            }
        }
    }

    /** Binds a layer's gradients in place, as input and output. */
    private Map<String, Tensor> sums(List<String> trained, int layer) {
        Map<String, Tensor> sums = new HashMap<>();
        for (String tensor : trained) {
            sums.put(
                    LayerGradient.gradientOf(tensor), fixed(LayerGradient.sumOf(LayerGradient.ofLayer(tensor, layer))));
        }
        return sums;
    }

    private Map<String, Tensor> feeds(
            List<String> names, int layer, Map<String, Tensor> common, Map<String, Tensor> flows) {
        Map<String, Tensor> feeds = new HashMap<>();
        String sum = LayerGradient.sumOf("");
        for (String name : names) {
            Tensor given = flows.get(name);
            if (given == null) {
                given = common.get(
                        name.equals(SequenceGraph.MASK)
                                ? tables.mask(layer)
                                : name.equals(RoutingPorts.replayed(0)) ? RoutingPorts.replayed(layer) : name);
            }
            if (given == null) {
                given = fixed(
                        name.startsWith(sum)
                                ? LayerGradient.sumOf(LayerGradient.ofLayer(name.substring(sum.length()), layer))
                                : LayerGradient.ofLayer(name, layer));
            }
            feeds.put(name, given);
        }
        return feeds;
    }

    private Tensor fixed(String name) {
        return Objects.requireNonNull(pass.fixed.get(name), name);
    }

    private static Tensor tensor(Session.Result result, String output) {
        return result.tensor(output);
    }

    private void requireWanted() {
        if (Thread.currentThread().isInterrupted()) {
            throw new CancellationException(
                    "interrupted within a micro-batch of " + micro.sequences().length + " sequences");
        }
    }
}
