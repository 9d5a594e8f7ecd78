package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.decoder.NaiveDecoder;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.DoubleSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

class GradientSessionTest {
    static final List<DecoderShape> SHAPES = Shapes.VARIED;
    /** Room for next to nothing: chunks are as small as they get. */
    private static final LogitsMemory FOUR_ROWS = new LogitsMemory(1);

    private static final int[] LENGTHS = {6, 2, 9, 1, 13, 6};

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldAgreeWithFiniteDifferencesOfTheNaiveTwinForEveryTensor(DecoderShape shape) {
        requireFiniteDifferences(shape, RaggedBatches.random(shape, 2, LENGTHS));
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldAgreeWithFiniteDifferencesOfTheSoftmaxOverTheKeptTokens(DecoderShape shape) {
        requireFiniteDifferences(shape, RaggedBatches.cut(shape, 7, RaggedBatches.random(shape, 2, LENGTHS)));
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldAgreeWithFiniteDifferencesWhereTheHeadTakesChunks(DecoderShape shape) {
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        requireFiniteDifferences(shape, batch, 100, FOUR_ROWS);
        requireFiniteDifferences(shape, RaggedBatches.cut(shape, 7, batch), 100, FOUR_ROWS);
    }

    private static void requireFiniteDifferences(DecoderShape shape, SequenceBatch batch) {
        requireFiniteDifferences(shape, batch, 20, LogitsMemory.DEFAULT);
    }

    private static void requireFiniteDifferences(
            DecoderShape shape, SequenceBatch batch, int budget, LogitsMemory logits) {
        requireFiniteDifferences(shape, batch, budget, logits, Activations.KEPT);
    }

    private static void requireFiniteDifferences(
            DecoderShape shape, SequenceBatch batch, int budget, LogitsMemory logits, Activations activations) {
        Weights weights = RaggedBatches.weights(shape, 1);
        float[] temperatures = RaggedBatches.temperatures(3, LENGTHS.length);
        float[] logProbCoefficients = coefficients(4, batch);
        float[] entropyCoefficients = coefficients(5, batch);
        float[] valueCoefficients = coefficients(8, batch);
        List<Gradients> found = new ArrayList<>();
        for (Engine engine : List.of(Engine.cpu(), Engine.cpuAsDevice())) {
            Gradients gradients = new Gradients(shape);
            try (GradientSession session = new GradientSession(
                    engine, shape, Optional.empty(), MicrobatchLimit.ofTokens(budget), logits, activations)) {
                session.accumulate(
                        weights,
                        new GradientPass.Part(
                                batch, temperatures, logProbCoefficients, entropyCoefficients, valueCoefficients),
                        gradients);
            }
            found.add(gradients);
        }
        NaiveDecoder twin = new NaiveDecoder(weights);
        SplittableRandom random = new SplittableRandom(6);
        for (TensorSpec spec : shape.tensors()) {
            double[] tensor = twin.tensor(spec.name());
            for (int trial = 0; trial < 2; trial++) {
                double[] direction = random.doubles(tensor.length, -1, 1).toArray();
                double step = 1e-5;
                double up = nudged(
                        tensor,
                        direction,
                        step,
                        () -> objective(twin, batch, temperatures, logProbCoefficients, entropyCoefficients)
                                + objective(twin, batch, valueCoefficients));
                double down = nudged(
                        tensor,
                        direction,
                        -step,
                        () -> objective(twin, batch, temperatures, logProbCoefficients, entropyCoefficients)
                                + objective(twin, batch, valueCoefficients));
                for (Gradients gradients : found) {
                    float[] gradient = gradients.values(spec.name());
                    double claimed = 0;
                    double scale = 0;
                    for (int i = 0; i < tensor.length; i++) {
                        claimed += gradient[i] * direction[i];
                        scale += gradient[i] * gradient[i];
                    }
                    assertThat(Math.sqrt(scale)).as(spec.name()).isGreaterThan(1e-3);
                    assertThat(claimed)
                            .as(spec.name())
                            .isCloseTo((up - down) / (2 * step), within(1e-5 * (1 + Math.sqrt(scale))));
                }
            }
        }
    }

    @Test
    void shouldKnowThatAGradientIsNoLongerZero() {
        DecoderShape shape = Shapes.TIED;
        Gradients gradients = new Gradients(shape);
        SequenceBatch batch = new SequenceBatch(new int[][] {{1, 2, 3}}, new int[] {1});
        assertThat(gradients.isZero()).isTrue();
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 64)) {
            session.accumulate(
                    RaggedBatches.weights(shape, 1),
                    batch,
                    new float[] {1},
                    new float[] {1, 1},
                    new float[2],
                    gradients);
        }
        assertThat(gradients.isZero()).isFalse();
        gradients.zero();
        assertThat(gradients.isZero()).isTrue();
    }

    @Test
    void shouldReturnTheScoresOfTheForwardPass() {
        DecoderShape shape = Shapes.GROUPED_UNTIED_BIASED.withValueHead(true);
        Weights weights = RaggedBatches.weights(shape, 1);
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        float[] temperatures = RaggedBatches.temperatures(3, LENGTHS.length);
        try (GradientSession gradient = new GradientSession(Engine.cpu(), shape, 64);
                ScoringSession scoring = new ScoringSession(Engine.cpu(), shape, 64)) {
            TokenScores expected = scoring.score(weights, batch, temperatures);
            TokenScores actual = gradient.accumulate(
                    weights, batch, temperatures, coefficients(4, batch), coefficients(5, batch), new Gradients(shape));
            assertThat(actual.logProbs()).containsExactly(expected.logProbs(), within(1e-6f));
            assertThat(actual.entropies()).containsExactly(expected.entropies(), within(1e-6f));
            assertThat(actual.sumSquaredProbs()).containsExactly(expected.sumSquaredProbs(), within(1e-6f));
            assertThat(actual.values()).hasSize(batch.scoredCount()).containsExactly(expected.values(), within(1e-6f));
        }
    }

    @Test
    void shouldGiveTheSameBitsEveryTimeAndAddToWhatIsThere() {
        DecoderShape shape = Shapes.DEFAULT_TASK;
        Weights weights = RaggedBatches.weights(shape, 1);
        SequenceBatch batch = RaggedBatches.random(shape, 2, 12, 7, 30, 12, 12, 9);
        float[] temperatures = RaggedBatches.temperatures(3, 6);
        float[] c = coefficients(4, batch);
        float[] e = coefficients(5, batch);
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 40);
                GradientSession another = new GradientSession(Engine.cpu(), shape, 40)) {
            Gradients once = new Gradients(shape);
            session.accumulate(weights, batch, temperatures, c, e, once);
            Gradients again = new Gradients(shape);
            for (int repeat = 0; repeat < 5; repeat++) {
                again.zero();
                (repeat % 2 == 0 ? session : another).accumulate(weights, batch, temperatures, c, e, again);
                for (TensorSpec spec : shape.tensors()) {
                    assertThat(again.values(spec.name())).containsExactly(once.values(spec.name()));
                }
            }
            again.zero();
            again.tensor("model.norm.weight").put(3, 5f);
            session.accumulate(weights, batch, temperatures, new float[c.length], new float[e.length], again);
            assertThat(again.l2Norm()).isEqualTo(5);
        }
    }

    @Test
    void shouldNotDependOnTheTokenBudgetBeyondRounding() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 1);
        SequenceBatch batch = RaggedBatches.random(shape, 2, 12, 7, 30, 12, 12, 9);
        float[] temperatures = RaggedBatches.temperatures(3, 6);
        Gradients whole = new Gradients(shape);
        accumulate(1000, weights, batch, temperatures, whole);
        double norm = whole.l2Norm();
        for (int budget : new int[] {1, 8, 13, 24, 40, 70}) {
            Gradients parts = new Gradients(shape);
            accumulate(budget, weights, batch, temperatures, parts);
            parts.scale(-1);
            parts.add(whole);
            assertThat(parts.l2Norm()).as("micro-batches of %d tokens", budget).isLessThan(1e-6 * norm);
        }
    }

    /** Scores have the same bits, and of the gradients all but the head's have, which is summed in another order. */
    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldFindInChunksWhatItFindsAtOnce(DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        SequenceBatch ragged = RaggedBatches.random(shape, 2, 12, 7, 30, 12, 12, 9, 11, 12, 10);
        for (SequenceBatch batch : List.of(ragged, RaggedBatches.cut(shape, 7, ragged))) {
            float[] temperatures = RaggedBatches.temperatures(3, 9);
            float[] c = coefficients(4, batch);
            float[] e = coefficients(5, batch);
            try (GradientSession whole = new GradientSession(Engine.cpu(), shape, 200);
                    GradientSession chunks = new GradientSession(Engine.cpu(), shape, 200, FOUR_ROWS)) {
                Gradients expected = new Gradients(shape);
                TokenScores scores = whole.accumulate(weights, batch, temperatures, c, e, expected);
                Gradients found = new Gradients(shape);
                TokenScores again = chunks.accumulate(weights, batch, temperatures, c, e, found);
                assertThat(again.logProbs()).containsExactly(scores.logProbs());
                assertThat(again.entropies()).containsExactly(scores.entropies());
                assertThat(again.sumSquaredProbs()).containsExactly(scores.sumSquaredProbs());
                assertThat(again.values()).containsExactly(scores.values());
                Gradients repeated = new Gradients(shape);
                chunks.accumulate(weights, batch, temperatures, c, e, repeated);
                for (TensorSpec spec : shape.tensors()) {
                    assertThat(repeated.values(spec.name())).containsExactly(found.values(spec.name()));
                }
                double norm = expected.l2Norm();
                assertThat(norm).isGreaterThan(1);
                found.scale(-1);
                found.add(expected);
                assertThat(found.l2Norm()).isBetween(Double.MIN_VALUE, 1e-6 * norm);
            }
        }
    }

    /** A layer's values are the same whether they were kept or are found again. */
    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldFindTheSameGradientWhereLayersAreComputedAgain(DecoderShape shape) {
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        requireFiniteDifferences(shape, batch, 100, LogitsMemory.DEFAULT, Activations.RECOMPUTED);
        Gradients kept = gradient(shape, batch, MicrobatchLimit.ofTokens(40), Activations.KEPT);
        Gradients again = gradient(shape, batch, MicrobatchLimit.ofTokens(40), Activations.RECOMPUTED);
        double norm = kept.l2Norm();
        assertThat(norm).isGreaterThan(1);
        again.scale(-1);
        again.add(kept);
        assertThat(again.l2Norm()).isLessThan(1e-6 * norm);
    }

    @Test
    void shouldAddInOneOrderWhicheverThreadIsQuicker() throws Exception {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 1);
        List<GradientPass.Part> parts = List.of(
                part(RaggedBatches.random(shape, 2, 12, 7, 30, 12, 12, 9)),
                part(RaggedBatches.random(shape, 7, 5, 30, 8)));
        Gradients expected = new Gradients(shape);
        ExecutorService threads = Executors.newFixedThreadPool(3);
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 16)) {
            try (GradientPass pass = session.begin(weights, parts, expected)) {
                for (int piece = 0; piece < pass.pieces(); piece++) {
                    pass.run(piece);
                }
                pass.finish();
            }
            for (int repeat = 0; repeat < 5; repeat++) {
                Gradients found = new Gradients(shape);
                try (GradientPass pass = session.begin(weights, parts, found)) {
                    List<Future<?>> pieces = new ArrayList<>();
                    for (int i = 0; i < pass.pieces(); i++) {
                        int piece = i;
                        pieces.add(threads.submit(() -> pass.run(piece)));
                    }
                    for (Future<?> piece : pieces) {
                        piece.get();
                    }
                    pass.finish();
                    assertThat(pass.pieces()).isGreaterThan(6);
                    assertThat(pass.scores(1).count())
                            .isEqualTo(parts.get(1).batch().scoredCount());
                }
                for (TensorSpec spec : shape.tensors()) {
                    assertThat(found.values(spec.name())).containsExactly(expected.values(spec.name()));
                }
            }
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void shouldEndEveryPieceWhereOneFails() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 1);
        weights.tensor("model.norm.weight").put(0, Float.NaN);
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 16);
                GradientPass pass = session.begin(
                        weights, List.of(part(RaggedBatches.random(shape, 2, 12, 7, 30))), new Gradients(shape))) {
            assertThatThrownBy(() -> pass.run(0)).isInstanceOf(NonFiniteScoreException.class);
            assertThatThrownBy(() -> pass.run(1))
                    .isInstanceOf(CancellationException.class)
                    .hasMessage("another part of the gradient could not be found");
        }
    }

    private static GradientPass.Part part(SequenceBatch batch) {
        return new GradientPass.Part(
                batch,
                RaggedBatches.temperatures(3, batch.sequenceCount()),
                coefficients(4, batch),
                coefficients(5, batch));
    }

    @Test
    void shouldTakeAsManySequencesAsFitIntoTheMemory() {
        DecoderShape shape = Shapes.TIED;
        PassMemory memory = PassMemory.of(shape, Optional.empty(), Activations.KEPT, LogitsMemory.DEFAULT);
        long three = memory.bytes(3, 12);
        assertThat(memory.bytes(4, 12)).isGreaterThan(three);
        assertThat(memory.sequences(12, new MicrobatchLimit(1000, three))).isEqualTo(3);
        assertThat(memory.sequences(12, new MicrobatchLimit(24, three))).isEqualTo(2);
        PassMemory recomputed = PassMemory.of(shape, Optional.empty(), Activations.RECOMPUTED, LogitsMemory.DEFAULT);
        assertThat(recomputed.bytes(3, 12)).isLessThan(three);

        SequenceBatch batch = RaggedBatches.random(shape, 2, 13, 13, 13, 13, 13);
        Gradients all = gradient(shape, batch, MicrobatchLimit.ofTokens(1000), Activations.KEPT);
        Gradients parts = gradient(shape, batch, new MicrobatchLimit(1000, three), Activations.KEPT);
        parts.scale(-1);
        parts.add(all);
        assertThat(parts.l2Norm()).isLessThan(1e-6 * all.l2Norm());
    }

    @Test
    void shouldRefuseASequenceThatAloneTakesMoreThanThereIs() {
        DecoderShape shape = Shapes.TIED;
        SequenceBatch batch = RaggedBatches.random(shape, 2, 3, 13);
        assertThatThrownBy(() -> gradient(shape, batch, new MicrobatchLimit(1000, 1024), Activations.KEPT))
                .isInstanceOf(PassMemoryException.class)
                .hasMessageMatching(
                        "one sequence of 4 tokens takes 0 MB on its way forward and back, more than the 0 MB"
                                + " that a pass may take");
    }

    private static Gradients gradient(
            DecoderShape shape, SequenceBatch batch, MicrobatchLimit limit, Activations activations) {
        Gradients gradients = new Gradients(shape);
        GradientPass.Part part = part(batch);
        try (GradientSession session =
                new GradientSession(Engine.cpu(), shape, Optional.empty(), limit, LogitsMemory.DEFAULT, activations)) {
            session.accumulate(
                    RaggedBatches.weights(shape, 1),
                    batch,
                    part.temperatures(),
                    part.logProbCoefficients(),
                    part.entropyCoefficients(),
                    gradients);
        }
        return gradients;
    }

    private static void accumulate(
            int budget, Weights weights, SequenceBatch batch, float[] temperatures, Gradients into) {
        try (GradientSession session = new GradientSession(Engine.cpu(), weights.shape(), budget)) {
            session.accumulate(weights, batch, temperatures, coefficients(4, batch), coefficients(5, batch), into);
        }
    }

    @Test
    void shouldRefuseCoefficientsThatDoNotFit() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = Weights.random(shape, 1);
        SequenceBatch batch = new SequenceBatch(new int[][] {{1, 2, 3}}, new int[] {1});
        Gradients into = new Gradients(shape);
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 20)) {
            assertThatThrownBy(
                            () -> session.accumulate(weights, batch, new float[] {1}, new float[3], new float[2], into))
                    .hasMessage("one value per scored token: logProbCoefficients.length=3, scored tokens=2");
            assertThatThrownBy(() -> session.accumulate(
                            weights, batch, new float[] {1}, new float[2], new float[] {0, Float.NaN}, into))
                    .hasMessage("entropyCoefficients must be finite: NaN at packed token 1");
            assertThatThrownBy(() -> session.accumulate(
                            weights,
                            batch,
                            new float[] {1},
                            new float[2],
                            new float[2],
                            new Gradients(Shapes.ONE_KEY_HEAD)))
                    .hasMessageStartingWith("these gradients are of another shape");
        }
    }

    static double nudged(double[] tensor, double[] direction, double step, DoubleSupplier value) {
        double[] original = tensor.clone();
        for (int i = 0; i < tensor.length; i++) {
            tensor[i] += step * direction[i];
        }
        double result = value.getAsDouble();
        System.arraycopy(original, 0, tensor, 0, tensor.length);
        return result;
    }

    static double objective(NaiveDecoder twin, SequenceBatch batch, float[] temperatures, float[] c, float[] e) {
        double sum = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double[][] logProbs = twin.logProbs(RaggedBatches.sequence(batch, s), temperatures[s]);
            for (int t = batch.firstScored(s); t < batch.length(s); t++) {
                int packed = batch.offset(s) + t - batch.firstScored(s);
                double[] row = RaggedBatches.renormalised(batch, s, t, logProbs[t - 1]);
                double entropy = 0;
                for (double logProb : row) {
                    entropy -= logProb == Double.NEGATIVE_INFINITY ? 0 : Math.exp(logProb) * logProb;
                }
                sum += c[packed] * row[batch.token(s, t)] + e[packed] * entropy;
            }
        }
        return sum;
    }

    private static double objective(NaiveDecoder twin, SequenceBatch batch, float[] v) {
        double sum = 0;
        for (int s = 0; twin.tensor("value_head.weight") != null && s < batch.sequenceCount(); s++) {
            double[] values = twin.values(RaggedBatches.sequence(batch, s));
            for (int t = batch.firstScored(s); t < batch.length(s); t++) {
                sum += v[batch.offset(s) + t - batch.firstScored(s)] * values[t - 1];
            }
        }
        return sum;
    }

    static float[] coefficients(long seed, SequenceBatch batch) {
        SplittableRandom random = new SplittableRandom(seed);
        float[] coefficients = new float[batch.scoredCount()];
        for (int i = 0; i < coefficients.length; i++) {
            coefficients[i] = (float) random.nextDouble(-1, 1);
        }
        return coefficients;
    }
}
