package dev.millrace.policy.decoder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecodeGraph.TokenChoice;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import java.util.Map;
import java.util.OptionalInt;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RunningSumsTest {
    private static final int ROWS = 3;

    /** Lengths that are a block's multiple and not, of one level of blocks and of two. */
    @ParameterizedTest
    @ValueSource(ints = {5, 256, 640, 1_000, 20_001})
    void shouldBeTheSumsWhateverTheBlocks(int length) {
        GraphBuilder graph = new GraphBuilder("sums", true);
        Operators ops = new Operators(graph);
        Value x = graph.input("x", ElementType.FLOAT, Shape.of(ROWS, length));
        graph.output("exclusive", TokenChoice.sumsBefore(ops, x));
        SplittableRandom random = new SplittableRandom(length);
        float[] values = new float[ROWS * length];
        for (int i = 0; i < values.length; i++) {
            values[i] = random.nextInt(4) == 0 ? 0 : (float) random.nextDouble(1.0 / length);
        }
        Session.Options options = new Session.Options(OptionalInt.empty(), false, 1, false, true, Map.of(), Map.of());
        try (Session session = Session.compile(graph.model().toByteArray(), options);
                Tensor in = Tensor.of(values, ROWS, length);
                Session.Result result = session.run(Map.of("x", in))) {
            float[] exclusive = result.floats("exclusive");
            for (int row = 0; row < ROWS; row++) {
                double sum = 0;
                for (int i = row * length; i < (row + 1) * length; i++) {
                    assertThat((double) exclusive[i]).isCloseTo(sum, within(1e-6));
                    sum += values[i];
                }
            }
        }
    }

    /**
     * At the edge between two places: the place on either side is right, and one of probability 0 never is. Every edge of the
     * short row; of the long one those about multiples of 64, where blocks meet, and every 29th.
     */
    @ParameterizedTest
    @CsvSource({"300, true", "20001, true", "300, false", "20001, false"})
    void shouldDrawTheSamePlacesInBlocks(int length, boolean onDevice) {
        SplittableRandom random = new SplittableRandom(length);
        float[] values = new float[length];
        double total = 0;
        for (int i = 0; i < length; i++) {
            values[i] = i % 64 == 0 || i % 3 == 0 ? 0 : (float) random.nextDouble(1.0 / length);
            total += values[i];
        }
        GraphBuilder graph = new GraphBuilder("draw", onDevice);
        Operators ops = new Operators(graph);
        Value x = graph.input("x", ElementType.FLOAT, Shape.of(1, length));
        Value uniform = graph.input("uniform", ElementType.FLOAT, Shape.of(1));
        graph.output("place", TokenChoice.inverseCdf(ops, x, uniform));
        Session.Options options = new Session.Options(OptionalInt.empty(), false, 1, false, true, Map.of(), Map.of());
        try (Session session = Session.compile(graph.model().toByteArray(), options);
                Tensor in = Tensor.of(values, 1, length)) {
            double before = 0;
            for (int i = 0; i < length; i++) {
                int place = i;
                double middle = (before + values[i] / 2) / total;
                before += values[i];
                if (length > 300 && (i + 2) % 64 > 4 && i % 29 != 0) {
                    continue;
                }
                for (float u : new float[] {(float) (before / total), (float) middle}) {
                    try (Tensor drawn = Tensor.of(new float[] {Math.min(u, Math.nextDown(1f))}, 1);
                            Session.Result result = session.run(Map.of("x", in, "uniform", drawn))) {
                        int at = (int) result.longs("place")[0];
                        assertThat(values[at]).isPositive();
                        if (u == (float) middle && values[place] > 0.2f / length) {
                            assertThat(at).isEqualTo(place);
                        }
                    }
                }
            }
        }
    }
}
