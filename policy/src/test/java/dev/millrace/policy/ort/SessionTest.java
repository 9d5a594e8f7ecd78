package dev.millrace.policy.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** The functions that are known by their places in the runtime's table do what they are taken for. */
class SessionTest {
    private static Session.Options options(OptionalInt cuda) {
        return new Session.Options(
                cuda, false, 1, false, true, Map.of("session.intra_op.allow_spinning", "0"), Map.of());
    }

    private static Session sum() {
        GraphBuilder graph = new GraphBuilder("sum");
        Operators ops = new Operators(graph);
        Value a = graph.input("a", ElementType.FLOAT, Shape.of(Dim.symbol("N")));
        Value b = graph.input("b", ElementType.FLOAT, Shape.of(Dim.symbol("N")));
        graph.output("sum", ops.add(a, b));
        graph.output("product", ops.mul(a, b));
        return Session.compile(graph.model().toByteArray(), options(OptionalInt.empty()));
    }

    @Test
    void shouldSayWhichRuntimeItIs() {
        assertThat(Ort.version()).matches("1\\.\\d+\\.\\d+");
        assertThat(Ort.providers()).contains("CPUExecutionProvider");
    }

    @Test
    void shouldRunAsOftenAsAskedWithWhatIsBound() {
        try (Session session = sum();
                Tensor a = Tensor.of(new float[] {1, 2}, 2);
                Tensor b = Tensor.of(new float[] {10, 20}, 2);
                Tensor longer = Tensor.of(new float[] {1, 2, 3}, 3);
                Session.Binding binding = session.bind()) {
            assertThat(session.outputs()).containsExactly("sum", "product");
            binding.input("a", a).input("b", b).output("product", Place.HOST).output("sum", Place.HOST);
            try (Session.Result first = binding.run();
                    Session.Result second =
                            binding.input("a", longer).input("b", longer).run()) {
                assertThat(first.floats("sum")).containsExactly(11, 22);
                assertThat(first.floats("product")).containsExactly(10, 40);
                assertThat(second.floats("sum")).containsExactly(2, 4, 6);
                assertThat(second.tensor("sum").dims()).containsExactly(3);
                assertThatThrownBy(() -> first.floats("quotient")).hasMessage("no output quotient");
            }
        }
    }

    @Test
    void shouldWriteIntoTheMemoryOfWhatItReads() {
        FloatBuffer memory =
                ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder()).asFloatBuffer();
        memory.put(new float[] {0, 1, 2, 3}).flip().position(1);
        try (Session session = sum();
                Tensor all = Tensor.of(memory, 3);
                Tensor some = all.view(2);
                Tensor more = Tensor.of(new float[] {5, 6}, 2)) {
            session.run(Map.of("a", some, "b", more), List.of(), Map.of("sum", some), Place.HOST)
                    .close();
            assertThat(new float[] {memory.get(0), memory.get(1), memory.get(2), memory.get(3)})
                    .containsExactly(0, 6, 8, 3);
            assertThatThrownBy(() -> all.view(4)).hasMessage("a view of [4] of a tensor of [3]");
        }
    }

    @Test
    void shouldSayWhatTheRuntimeSays() {
        try (Session session = sum();
                Tensor ids = Tensor.of(new long[] {1, 2}, 2);
                Tensor one = Tensor.of(new float[] {1}, 1)) {
            assertThat(ids.longs()).containsExactly(1, 2);
            assertThatThrownBy(ids::floats).hasMessageContaining("not of FLOAT");
            assertThatThrownBy(() -> session.run(Map.of("a", ids, "b", one)))
                    .isInstanceOf(OrtException.class)
                    .hasMessageContaining("a");
            assertThatThrownBy(() -> Tensor.of(new float[2], 3)).hasMessage("a tensor of [3] has 3 values, not 2");
        }
        assertThatThrownBy(() -> Session.compile(new byte[] {1, 2, 3}, options(OptionalInt.empty())))
                .isInstanceOf(OrtException.class);
    }

    @Test
    void shouldAskForCudaByTheFunctionsThatAreForIt() {
        assumeFalse(Ort.providers().contains("CUDAExecutionProvider"), "built with -Pgpu");
        GraphBuilder graph = new GraphBuilder("none");
        graph.output("out", new Operators(graph).identity(graph.input("in", ElementType.FLOAT, Shape.of(1))));
        assertThatThrownBy(() -> Session.compile(graph.model().toByteArray(), options(OptionalInt.of(0))))
                .isInstanceOf(OrtException.class)
                .hasMessageContaining("CUDA");
    }
}
