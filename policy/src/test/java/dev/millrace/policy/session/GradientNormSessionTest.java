package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.SequenceGraph;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

class GradientNormSessionTest {
    static final List<DecoderShape> SHAPES = List.of(
            Shapes.TIED,
            Shapes.GROUPED_UNTIED_BIASED,
            Shapes.ONE_KEY_HEAD,
            Shapes.DEFAULT_TASK,
            Shapes.ALL_TRAITS,
            Shapes.VALUE_HEAD);
    /** From few tokens, where Gram matrices are cheaper for every matrix, to many, where they are cheaper for none. */
    private static final int[] LENGTHS = {6, 2, 9, 1, 13, 6, 6, 33, 60, 2, 5, 17, 64};

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldEqualTheNormsOfGradientsTakenOneByOne(DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        float[] temperatures = RaggedBatches.temperatures(3, LENGTHS.length);
        SequenceBatch whole = RaggedBatches.random(shape, 3, LENGTHS);
        List<SequenceBatch> batches =
                List.of(RaggedBatches.random(shape, 2, LENGTHS), whole, RaggedBatches.cut(shape, 7, whole));
        List<float[]> coefficients = batches.stream()
                .map(batch -> coefficients(4 + batches.indexOf(batch), batch))
                .toList();
        List<double[]> expected = new ArrayList<>();
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 4096)) {
            for (int b = 0; b < batches.size(); b++) {
                expected.add(oneByOne(session, shape, weights, batches.get(b), temperatures, coefficients.get(b)));
            }
        }
        for (int budget : new int[] {1, 40, 4096}) {
            try (GradientNormSession session = new GradientNormSession(Engine.cpu(), shape, budget)) {
                for (int b = 0; b < batches.size(); b++) {
                    double[] norms = session.norms(weights, batches.get(b), temperatures, coefficients.get(b));
                    for (int s = 0; s < norms.length; s++) {
                        assertThat(norms[s])
                                .as("batch %d, sequence %d, budget %d", b, s, budget)
                                .isCloseTo(expected.get(b)[s], within(1e-5 * expected.get(b)[s]));
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldTakeEveryMatrixBothWays(DecoderShape shape) {
        assertThat(SequenceGraph.cheaperByGram(shape, 64, 64)).isEmpty();
        Set<String> all = SequenceGraph.cheaperByGram(shape, 1, 1);
        long matrices =
                shape.tensors().stream().filter(spec -> spec.dims().size() == 2).count();
        assertThat(all).hasSize((int) (shape.tiedHead() ? matrices : matrices - 1)); // but an embedding looked up alone
    }

    /** The same token is looked up and predicted again and again, so that what it is given as input and as output meet. */
    @Test
    void shouldTakeTheNormOfATiedEmbeddingsSumAndNotTheSumOfItsNorms() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 1);
        SequenceBatch batch =
                new SequenceBatch(new int[][] {{3, 3, 3, 3, 3}, {3, 4, 3, 4, 3}, {5, 5}}, new int[] {1, 1, 1});
        float[] temperatures = {1, 1, 1};
        float[] coefficients = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        try (GradientSession single = new GradientSession(Engine.cpu(), shape, 4096);
                GradientNormSession session = new GradientNormSession(Engine.cpu(), shape, 64)) {
            double[] expected = oneByOne(single, shape, weights, batch, temperatures, coefficients);
            assertThat(session.norms(weights, batch, temperatures, coefficients))
                    .containsExactly(expected, within(1e-5 * expected[2]));
        }
    }

    @Test
    void shouldFindNothingWhereNothingIsTrained() {
        DecoderShape shape = Shapes.DEFAULT_TASK;
        SequenceBatch batch = new SequenceBatch(new int[][] {{1, 2, 3}, {1, 2, 3}, {1}}, new int[] {3, 1, 1});
        try (GradientNormSession session = new GradientNormSession(Engine.cpu(), shape, 64)) {
            assertThat(session.norms(Weights.random(shape, 1), batch, new float[] {1, 1, 1}, new float[2]))
                    .containsOnly(0);
        }
    }

    @Test
    void shouldGiveTheSameBitsEveryTimeAndOnAnyThread() throws Exception {
        DecoderShape shape = Shapes.DEFAULT_TASK;
        Weights weights = RaggedBatches.weights(shape, 1);
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        float[] temperatures = RaggedBatches.temperatures(3, LENGTHS.length);
        float[] coefficients = coefficients(4, batch);
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (GradientNormSession session = new GradientNormSession(Engine.cpu(), shape, 40)) {
            double[] expected = session.norms(weights, batch, temperatures, coefficients);
            List<Future<double[]>> found = new ArrayList<>();
            for (int repeat = 0; repeat < 12; repeat++) {
                found.add(threads.submit(() -> session.norms(weights, batch, temperatures, coefficients)));
            }
            for (Future<double[]> norms : found) {
                assertThat(norms.get()).containsExactly(expected);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void shouldNameTheTokenAtWhichTheWeightsGiveNoNumber() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = Weights.random(shape, 1);
        weights.tensor("model.norm.weight").put(0, Float.NaN);
        SequenceBatch batch = new SequenceBatch(new int[][] {{1, 2, 3}}, new int[] {1});
        try (GradientNormSession session = new GradientNormSession(Engine.cpu(), shape, 64)) {
            assertThatThrownBy(() -> session.norms(weights, batch, new float[] {1}, new float[] {1, 1}))
                    .isInstanceOf(NonFiniteScoreException.class)
                    .hasMessageStartingWith("sequence 0, token 1: logProb=NaN");
            assertThatThrownBy(() -> session.norms(weights, batch, new float[] {1}, new float[] {1, Float.NaN}))
                    .hasMessage("coefficients must be finite: NaN at packed token 1");
        }
    }

    private static double[] oneByOne(
            GradientSession session,
            DecoderShape shape,
            Weights weights,
            SequenceBatch batch,
            float[] temperatures,
            float[] coefficients) {
        double[] norms = new double[batch.sequenceCount()];
        for (int s = 0; s < norms.length; s++) {
            SequenceBatch one = new SequenceBatch(
                    new int[][] {RaggedBatches.sequence(batch, s)},
                    new int[] {batch.firstScored(s)},
                    new SampledSupport[] {batch.kept(s)});
            float[] own = new float[one.scoredCount()];
            System.arraycopy(coefficients, batch.offset(s), own, 0, own.length);
            Gradients gradient = new Gradients(shape);
            session.accumulate(weights, one, new float[] {temperatures[s]}, own, new float[own.length], gradient);
            norms[s] = gradient.l2Norm();
        }
        return norms;
    }

    /** Coefficients of a mask, and others. */
    private static float[] coefficients(long seed, SequenceBatch batch) {
        SplittableRandom random = new SplittableRandom(seed);
        float[] coefficients = new float[batch.scoredCount()];
        for (int i = 0; i < coefficients.length; i++) {
            coefficients[i] = switch (random.nextInt(4)) {
                case 0 -> 0;
                case 1 -> (float) random.nextDouble(-1, 1);
                default -> 1;
            };
        }
        return coefficients;
    }
}
