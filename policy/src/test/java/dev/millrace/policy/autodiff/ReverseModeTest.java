package dev.millrace.policy.autodiff;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReverseModeTest {
    private final GraphBuilder graph = new GraphBuilder("test");
    private final Operators ops = new Operators(graph);
    private final Value x = graph.input("x", ElementType.FLOAT, Shape.of(2, 3));
    private final Value seed = graph.input("seed", ElementType.FLOAT, Shape.of(2, 3));

    @Test
    void shouldSumWhatArrivesOverSeveralWays() {
        RuleCase diamond = new RuleCase(
                "Mul",
                "x used five times over three ways",
                List.of(RuleCase.Input.random("x", Shape.of(3), -1, 1, 3)),
                (o, v) -> {
                    Value in = v.get("x");
                    Value a = o.exp(in);
                    return o.add(o.mul(a, o.sigmoid(in)), o.sub(o.mul(in, in), a));
                });
        assertThat(diamond.worstError()).isLessThan(2e-4);
    }

    @Test
    void shouldRefuseAnOperatorWithoutARuleByName() {
        Value y = ops.cumSum(ops.exp(x), 1, false);
        assertThatThrownBy(() -> ReverseMode.append(graph, Map.of(y, seed), List.of(x)))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageStartingWith("no gradient rule for operator CumSum, which produces CumSum_");
    }

    @Test
    void shouldNotMindAnOperatorWithoutARuleOffTheWay() {
        Value constant = ops.cumSum(ops.exp(seed), 1, false);
        Map<Value, Value> gradients = ReverseMode.append(graph, Map.of(ops.mul(x, constant), seed), List.of(x));
        assertThat(gradients.get(x).shape()).isEqualTo(Shape.of(2, 3));
    }

    @Test
    void shouldRefuseALeafThatDoesNotMatter() {
        Value other = graph.input("other", ElementType.FLOAT, Shape.of(1));
        assertThatThrownBy(() -> ReverseMode.append(graph, Map.of(ops.exp(x), seed), List.of(x, other)))
                .hasMessageStartingWith("other FLOAT[1] does not influence any of the results");
    }

    @Test
    void shouldRefuseASeedOfAnotherShape() {
        Value row = graph.input("row", ElementType.FLOAT, Shape.of(3));
        assertThatThrownBy(() -> ReverseMode.append(graph, Map.of(ops.exp(x), row), List.of(x)))
                .hasMessageContaining("must have its shape, not [3]");
    }

    @Test
    void shouldLetNothingFlowPastALeaf() {
        Value middle = ops.exp(x);
        Value y = ops.add(ops.mul(middle, middle), x);
        Map<Value, Value> gradients = ReverseMode.append(graph, Map.of(y, seed), List.of(middle, x));
        assertThat(gradients.get(x))
                .as("only the direct way, on which the gradient is the seed itself")
                .isEqualTo(seed);
        assertThat(gradients.get(middle)).isNotEqualTo(seed);
    }
}
