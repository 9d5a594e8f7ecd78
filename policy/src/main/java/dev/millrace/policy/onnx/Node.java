package dev.millrace.policy.onnx;

import dev.millrace.policy.onnx.proto.AttributeProto;
import dev.millrace.policy.onnx.proto.NodeProto;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * One operation of a graph, with its operands resolved to values.
 *
 * @param domain     empty for ONNX's own operators
 * @param inputs     operands in order; optional trailing operands are left out, never null
 * @param outputs    results in order
 */
public record Node(
        String domain,
        String operator,
        List<Value> inputs,
        List<Value> outputs,
        Map<String, AttributeProto> attributes) {

    public Node {
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
        attributes = Map.copyOf(attributes);
    }

    public Value input(int index) {
        return inputs.get(index);
    }

    public Value output() {
        return outputs.get(0);
    }

    public long attribute(String name, long otherwise) {
        AttributeProto attribute = attributes.get(name);
        return attribute == null ? otherwise : attribute.getI();
    }

    public float attribute(String name, float otherwise) {
        AttributeProto attribute = attributes.get(name);
        return attribute == null ? otherwise : attribute.getF();
    }

    public int[] attribute(String name, int[] otherwise) {
        AttributeProto attribute = attributes.get(name);
        return attribute == null
                ? otherwise
                : attribute.getIntsList().stream().mapToInt(Math::toIntExact).toArray();
    }

    NodeProto toProto(UnaryOperator<String> naming) {
        NodeProto.Builder proto = NodeProto.newBuilder().setOpType(operator).setDomain(domain);
        inputs.forEach(input -> proto.addInput(naming.apply(input.name())));
        outputs.forEach(output -> proto.addOutput(naming.apply(output.name())));
        attributes.values().stream()
                .sorted((a, b) -> a.getName().compareTo(b.getName()))
                .forEach(proto::addAttribute);
        return proto.build();
    }
}
