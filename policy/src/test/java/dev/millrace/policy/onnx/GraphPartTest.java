package dev.millrace.policy.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class GraphPartTest {
    private static final Map<String, Long> LENGTHS = Map.of("N", 1000L);
    private static final Shape ROWS = Shape.of(Dim.symbol("N"), Dim.of(8));
    private static final long BYTES = 1000 * 8 * Float.BYTES;

    private final GraphBuilder graph = new GraphBuilder("graph");
    private final Operators ops = new Operators(graph);
    private final Value x = graph.input("x", ElementType.FLOAT, ROWS);
    private final Value matrix = graph.input("matrix", ElementType.FLOAT, Shape.of(8, 8));

    /** p = x M; q = sin'(p) over p's memory; r = q M: q and r at once, then r and s. */
    @Test
    void shouldCountWhatIsThereAtTheSameTime() {
        Value p = ops.gemm(x, matrix, false, false);
        Value q = ops.sigmoid(p);
        Value r = ops.gemm(q, matrix, false, false);
        Value s = ops.gemm(r, matrix, false, false);
        GraphPart part = graph.part("part", Map.of("s", s));
        assertThat(part.peakBytes(LENGTHS, name -> false)).isEqualTo(2 * BYTES);
        assertThat(part.peakBytes(LENGTHS, name -> true)).isEqualTo(2 * BYTES);
        assertThat(part.outputBytes(LENGTHS)).isEqualTo(BYTES);
    }

    /** Of two readers of p the second keeps it from being written over; a view of it takes nothing. */
    @Test
    void shouldKeepWhatIsStillRead() {
        Value p = ops.gemm(x, matrix, false, false);
        Value q = ops.sigmoid(ops.reshape(p, Shape.of(Dim.of(8), Dim.symbol("N"))));
        Value sum = ops.add(ops.reshape(q, ROWS), p);
        assertThat(graph.part("part", Map.of("sum", sum)).peakBytes(LENGTHS, name -> true))
                .isEqualTo(2 * BYTES);
    }

    @Test
    void shouldTakeNothingThatItsOutputsDoNotNeed() {
        Value p = ops.sigmoid(x);
        ops.gemm(x, matrix, false, false);
        GraphPart part = graph.part("part", Map.of("p", p));
        assertThat(part.inputs()).containsExactly("x");
        assertThat(part.model().getGraph().getNodeList()).hasSize(1);
        assertThat(part.model().getGraph().getOutput(0).getName()).isEqualTo("p");
    }

    /** The way back reads p, which costs a product, and q, which costs none. */
    @Test
    void shouldKeepOfTheWayForwardWhatIsNotComputedAgain() {
        Value p = ops.gemm(x, matrix, false, false);
        Value q = ops.sigmoid(p);
        Value y = ops.gemm(q, matrix, false, false);
        int forward = graph.size();
        Value back = ops.mul(ops.mul(p, q), x);
        GraphPart.Cut kept = graph.cut(
                forward,
                Map.of("y", y),
                Map.of("back", back),
                node -> node.operator().equals("Sigmoid"));
        assertThat(kept.kept()).containsExactly(p);
        assertThat(kept.first().outputs()).containsExactlyInAnyOrder("y", p.name());
        assertThat(kept.second().inputs()).containsExactlyInAnyOrder("x", p.name());
        GraphPart.Cut again = graph.cut(forward, Map.of("y", y), Map.of("back", back), node -> true);
        assertThat(again.kept()).isEmpty();
        assertThat(again.second().inputs()).containsExactlyInAnyOrder("x", "matrix");
    }
}
