package dev.millrace.policy.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.onnx.proto.NodeProto;
import dev.millrace.policy.onnx.proto.ValueInfoProto;
import java.util.List;
import org.junit.jupiter.api.Test;

class OperatorsTest {
    private static final Dim B = Dim.symbol("B");
    private static final Dim L = Dim.symbol("L");
    private final GraphBuilder graph = new GraphBuilder("test");
    private final Operators ops = new Operators(graph);
    private final Value x = graph.input("x", ElementType.FLOAT, Shape.of(B, L, Dim.of(6)));

    @Test
    void shouldFollowShapesThroughProductsAndReshapes() {
        Value heads = ops.transpose(ops.reshape(x, Shape.of(B, L, Dim.of(2), Dim.of(3))), 0, 2, 1, 3);
        assertThat(heads.shape()).hasToString("[B, 2, L, 3]");
        assertThat(ops.fusedMatMul(heads, heads, false, true, 1f).shape()).hasToString("[B, 2, L, L]");
        assertThat(ops.reshape(x, Shape.of(B.times(L), Dim.of(6))).shape()).hasToString("[B*L, 6]");
        assertThat(ops.reshape(x, Shape.of(B.times(L).times(Dim.of(2)), Dim.of(3)))
                        .shape())
                .hasToString("[2*B*L, 3]");
        assertThat(ops.reduceSum(x, false, 0, -1).shape()).hasToString("[L]");
    }

    @Test
    void shouldRefuseOperandsThatDoNotFitWithBothShapes() {
        Value row = graph.input("row", ElementType.FLOAT, Shape.of(5));
        Value matrix = graph.input("matrix", ElementType.FLOAT, Shape.of(5, 4));
        assertThatThrownBy(() -> ops.add(x, row)).hasMessage("shapes [B, L, 6] and [5] do not broadcast: 6 against 5");
        assertThatThrownBy(() -> ops.matMul(x, matrix))
                .hasMessageStartingWith("inner axes differ in the product of x FLOAT[B, L, 6] and matrix FLOAT[5, 4]");
        assertThatThrownBy(() -> ops.gemm(x, matrix, false, false))
                .hasMessageStartingWith("Gemm multiplies two matrices");
        assertThatThrownBy(() -> ops.reshape(x, Shape.of(B, Dim.of(6))))
                .hasMessage("cannot reshape x FLOAT[B, L, 6] into [B, 6]");
        assertThatThrownBy(() -> ops.squeeze(x, 2)).hasMessageEndingWith("its length is not 1");
        assertThatThrownBy(() -> x.dim(3)).hasMessage("axis 3 of [B, L, 6] does not exist");
        assertThatThrownBy(() -> ops.rotary(x, row, matrix, matrix)).hasMessageStartingWith("rotary positions turn");
    }

    @Test
    void shouldRefuseALengthThatNoInputDefines() {
        Value odd = graph.input("odd", ElementType.FLOAT, Shape.of(Dim.of(2).times(Dim.symbol("K"))));
        assertThatThrownBy(() -> ops.expand(odd, Shape.of(B, Dim.of(2).times(Dim.symbol("K")))))
                .hasMessage("no input of graph test has an axis of length K");
    }

    @Test
    void shouldKeepEachConstantOnce() {
        Value one = graph.constant(1, 2);
        assertThat(graph.constant(1, 2)).isEqualTo(one);
        assertThat(graph.body("inner").constant(1, 2)).isEqualTo(one);
        assertThat(graph.scalar(1L)).isNotEqualTo(graph.constant(1));
        assertThat(graph.longs(one)).containsExactly(1, 2);
        assertThatThrownBy(() -> graph.longs(x)).hasMessageContaining("must be a constant of the graph");
    }

    @Test
    void shouldRefuseTwoOutputsOfOneName() {
        graph.output("y", ops.exp(x));
        Value negative = ops.neg(x);
        assertThatThrownBy(() -> graph.output("y", negative)).hasMessage("graph test has two outputs named y");
    }

    @Test
    void shouldRenameProducersOfOutputsAndSurviveTheWire() throws InvalidProtocolBufferException {
        Value y = ops.exp(x);
        graph.output("y", y);
        graph.output("y again", y);
        graph.output("x through", x);
        ops.neg(y);
        ModelProto model = ModelProto.parseFrom(graph.model().toByteArray());
        assertThat(model).isEqualTo(graph.model());
        assertThat(model.getGraph().getOutputList())
                .extracting(ValueInfoProto::getName)
                .containsExactly("y", "y again", "x through");
        List<NodeProto> nodes = model.getGraph().getNodeList();
        assertThat(nodes).extracting(NodeProto::getOpType).containsExactly("Exp", "Identity", "Identity", "Neg");
        assertThat(nodes.get(0).getOutput(0)).isEqualTo("y");
        assertThat(nodes.get(1).getInput(0)).isEqualTo("y");
        assertThat(nodes.get(3).getInput(0)).isEqualTo("y");
        assertThat(model.getGraph()
                        .getInput(0)
                        .getType()
                        .getTensorType()
                        .getShape()
                        .getDim(1)
                        .getDimParam())
                .isEqualTo("L");
    }
}
