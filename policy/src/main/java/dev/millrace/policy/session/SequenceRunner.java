package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.SequenceGraph;
import dev.millrace.policy.decoder.SequenceGraph.Rows;
import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.ort.OrtException;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.weights.Weights;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;

/** Runs one sequence graph over micro-batches: what scoring and gradient sessions share. Thread-safe. */
final class SequenceRunner implements AutoCloseable {
    private final Engine engine;
    private final DecoderShape shape;
    private final RowLimit limit;
    private final Graphs graphs;
    private final LengthTables tables;

    /** The compiled graph of a micro-batch; the runner closes it. */
    interface Graphs extends AutoCloseable {
        Session of(MicroBatch micro);

        default MicroBatch laidOut(MicroBatch planned) {
            return planned;
        }

        @Override
        void close();
    }

    /** Writes the graph for one kind of micro-batch. */
    @FunctionalInterface
    interface ModelOf {
        ModelProto write(Vocabulary vocabulary, Rows rows);
    }

    /**
     * One graph per kind of micro-batch: the one over the whole vocabulary is compiled at once, the others on demand.
     *
     * @param mostRows that go through the head at once
     */
    SequenceRunner(Engine engine, DecoderShape shape, int tokenBudget, int mostRows, ModelOf model) {
        this(engine, shape, RowLimit.tokens(tokenBudget), new KindGraphs(engine, mostRows, model));
    }

    private static final class KindGraphs implements Graphs {
        private final Engine engine;
        private final int mostRows;
        private final ModelOf model;
        private final Map<Kind, Session> compiled = new ConcurrentHashMap<>();

        private record Kind(Vocabulary vocabulary, Rows rows) {}

        KindGraphs(Engine engine, int mostRows, ModelOf model) {
            this.engine = engine;
            this.mostRows = mostRows;
            this.model = model;
            of(new Kind(Vocabulary.WHOLE, Rows.AT_ONCE));
        }

        @Override
        public Session of(MicroBatch micro) {
            return of(new Kind(micro.vocabulary(), micro.rowsInGraph()));
        }

        @Override
        public MicroBatch laidOut(MicroBatch planned) {
            return planned.inChunks(mostRows);
        }

        private Session of(Kind kind) {
            return compiled.computeIfAbsent(
                    kind, absent -> engine.compileForAnySize(model.write(kind.vocabulary(), kind.rows())));
        }

        @Override
        public void close() {
            for (Session session : compiled.values()) {
                session.close();
            }
        }
    }

    SequenceRunner(Engine engine, DecoderShape shape, RowLimit limit, Graphs graphs) {
        this.engine = engine;
        this.shape = shape;
        this.limit = limit;
        this.graphs = graphs;
        this.tables = new LengthTables(shape);
    }

    /** Feeds further tensors of a micro-batch, in addition to those of every sequence graph. */
    @FunctionalInterface
    interface Extra {
        void feed(MicroBatch micro, Feeds feeds);
    }

    /** Reads the results of a micro-batch before they are closed. */
    @FunctionalInterface
    interface Reader {
        void read(MicroBatch micro, Session.Result result);
    }

    TokenScores run(
            Weights weights,
            SequenceBatch batch,
            float[] temperatures,
            Extra extra,
            Set<String> outputs,
            Reader reader) {
        check(weights, batch, temperatures);
        TokenScores scores = TokenScores.allocate(batch.scoredCount(), shape);
        try (Engine.Bound fixed = engine.bound(weights.tensors())) {
            for (MicroBatch planned : MicroBatch.plan(batch, limit, shape)) {
                MicroBatch micro = graphs.laidOut(planned);
                if (Thread.currentThread().isInterrupted()) {
                    throw new CancellationException(
                            "interrupted between micro-batches of " + batch.sequenceCount() + " sequences");
                }
                try (Feeds feeds = new Feeds(fixed.tensors())) {
                    feed(micro, temperatures, feeds);
                    extra.feed(micro, feeds);
                    run(micro, feeds, outputs, reader, scores);
                }
            }
        }
        return scores;
    }

    private void feed(MicroBatch micro, float[] temperatures, Feeds feeds) {
        feeds.longs(SequenceGraph.TOKENS, micro.tokens(), micro.dims())
                .longs(SequenceGraph.POSITIONS, micro.positions(), micro.dims())
                .longs(SequenceGraph.ROWS, micro.rows(), micro.rowDims())
                .longs(SequenceGraph.TARGETS, micro.targets(), micro.rowCount())
                .floats(
                        SequenceGraph.INVERSE_TEMPERATURE,
                        micro.inverseTemperatures(temperatures),
                        micro.rowCount(),
                        1);
        tables.feedAngles(micro.length(), feeds);
        tables.feedMasks(micro.length(), feeds);
        micro.feedReplayed(shape, feeds);
        if (micro.vocabulary() == Vocabulary.CUT) {
            feeds.longs(SequenceGraph.KEPT, micro.keptIds(), micro.rowCount(), micro.width())
                    .floats(SequenceGraph.KEPT_MASK, micro.keptMask(), micro.rowCount(), micro.width());
        }
    }

    private void run(MicroBatch micro, Feeds feeds, Set<String> outputs, Reader reader, TokenScores scores) {
        try (Session.Result result = graphs.of(micro).run(feeds.map(), outputs, Map.of(), Place.HOST)) {
            micro.put(result.floats(SequenceGraph.LOG_PROBS), scores.logProbs());
            micro.put(result.floats(SequenceGraph.ENTROPIES), scores.entropies());
            micro.put(result.floats(SequenceGraph.SUM_SQUARED_PROBS), scores.sumSquaredProbs());
            if (outputs.contains(SequenceGraph.VALUES)) {
                micro.put(result.floats(SequenceGraph.VALUES), scores.values());
            }
            micro.refuseNonFinite(scores);
            reader.read(micro, result);
        } catch (OrtException e) {
            throw new InferenceException(
                    "ONNX Runtime failed on " + micro.sequences().length + " sequences of " + micro.length()
                            + " tokens on device " + engine.device() + ": " + e.getMessage(),
                    e);
        }
    }

    private void check(Weights weights, SequenceBatch batch, float[] temperatures) {
        check(shape, weights, batch, temperatures);
    }

    static void check(DecoderShape shape, Weights weights, SequenceBatch batch, float[] temperatures) {
        if (!weights.shape().equals(shape)) {
            throw new IllegalArgumentException(
                    "these weights are of another shape: " + weights.shape() + ", not " + shape);
        }
        if (temperatures.length != batch.sequenceCount()) {
            throw new IllegalArgumentException("one temperature per sequence: " + temperatures.length + " for "
                    + batch.sequenceCount() + " sequences");
        }
        for (int s = 0; s < temperatures.length; s++) {
            if (!(temperatures[s] > 0 && temperatures[s] < Float.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException(
                        "temperature must be finite and above 0: temperature=" + temperatures[s] + " of sequence " + s);
            }
        }
    }

    @Override
    public void close() {
        try {
            graphs.close();
        } catch (OrtException e) {
            throw new InferenceException("could not close the session: " + e.getMessage(), e);
        }
    }
}
