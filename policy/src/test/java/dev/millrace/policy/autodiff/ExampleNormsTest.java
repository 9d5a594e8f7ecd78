package dev.millrace.policy.autodiff;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.autodiff.ExampleNorms.Examples;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** {@code GradientNormSessionTest} checks the numbers on whole decoders. */
class ExampleNormsTest {
    private static final Dim EXAMPLES = Dim.symbol("B");
    private static final Dim LENGTH = Dim.symbol("L");

    private final GraphBuilder graph = new GraphBuilder("test");
    private final Operators ops = new Operators(graph);
    private final Value lengths = graph.input("lengths", ElementType.INT64, Shape.of(EXAMPLES, LENGTH));
    private final Value x = graph.input("x", ElementType.FLOAT, Shape.of(EXAMPLES.times(LENGTH), Dim.of(3)));
    private final Value seed = graph.input("seed", ElementType.FLOAT, Shape.of(EXAMPLES.times(LENGTH), Dim.of(5)));
    private final Value weight = graph.input("weight", ElementType.FLOAT, Shape.of(5, 3));

    @Test
    void shouldHaveASummandForEachColumnOfWhatItAddsUp() {
        Value source = ops.exp(x);
        assertThat(append(ops.gemm(source, weight, false, true), source, false).dim(0))
                .isEqualTo(EXAMPLES);
        assertThat(lengths.dim(1)).isEqualTo(LENGTH);
    }

    @Test
    void shouldRefuseAnOperatorOfWhichItDoesNotKnowHowItUsesAWeight() {
        Value source = ops.exp(x);
        assertThatThrownBy(() -> append(ops.matMul(source, ops.transpose(weight, 1, 0)), source, true))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageStartingWith(
                        "no rule for an example's own gradient by a weight that operator Transpose reads, which produces Transpose_");
    }

    @Test
    void shouldRefuseAProductTheOtherWayRound() {
        Value source = ops.exp(x);
        assertThatThrownBy(() -> append(ops.gemm(source, ops.transpose(weight, 1, 0), false, false), source, true))
                .hasMessageContaining("operator Transpose");
        Value untransposed = graph.input("untransposed", ElementType.FLOAT, Shape.of(3, 5));
        assertThatThrownBy(() -> ExampleNorms.append(
                        graph,
                        Map.of(ops.gemm(source, untransposed, false, false), seed),
                        List.of(source),
                        List.of(untransposed),
                        new Examples(EXAMPLES, List.of(LENGTH)),
                        any -> true))
                .hasMessageStartingWith(
                        "no rule for an example's own gradient by a weight that operator Gemm reads, which produces Gemm_");
    }

    @Test
    void shouldRefuseAMatrixThatIsMultipliedWithTwice() {
        Value source = ops.exp(x);
        Value y = ops.add(ops.gemm(source, weight, false, true), ops.gemm(ops.sigmoid(source), weight, false, true));
        assertThatThrownBy(() -> append(y, source, true))
                .hasMessageStartingWith("weight FLOAT[5, 3] is used twice, and not as an embedding and its head");
    }

    @Test
    void shouldRefuseRowsThatBelongToNoExample() {
        Value source = ops.exp(x);
        Value y = ops.gemm(source, weight, false, true);
        assertThatThrownBy(() -> ExampleNorms.append(
                        graph,
                        Map.of(y, seed),
                        List.of(source),
                        List.of(weight),
                        new Examples(EXAMPLES, List.of(Dim.symbol("P"))),
                        any -> true))
                .hasMessageContaining("has no rows of examples: its first axis is none of [P] times B");
    }

    private Value append(Value result, Value source, boolean byGram) {
        return ExampleNorms.append(
                graph,
                Map.of(result, seed),
                List.of(source),
                List.of(weight),
                new Examples(EXAMPLES, List.of(LENGTH)),
                any -> byGram);
    }
}
