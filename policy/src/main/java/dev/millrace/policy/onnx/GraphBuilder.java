package dev.millrace.policy.onnx;

import com.google.protobuf.ByteString;
import dev.millrace.policy.onnx.proto.AttributeProto;
import dev.millrace.policy.onnx.proto.GraphProto;
import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.onnx.proto.OperatorSetIdProto;
import dev.millrace.policy.onnx.proto.TensorProto;
import dev.millrace.policy.onnx.proto.TensorShapeProto;
import dev.millrace.policy.onnx.proto.TypeProto;
import dev.millrace.policy.onnx.proto.ValueInfoProto;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * An ONNX graph while it is being written: inputs, constants, nodes in the order they run, outputs.
 *
 * <p>Nodes are appended through {@link Operators}, which knows each operator's result shape. A {@link #body} sees the values
 * of the graph it is inside of; constants always live in the outermost graph, once each. Not thread-safe.
 */
public final class GraphBuilder {
    /** This operator set has every operator used here and is supported by all recent runtimes. */
    private static final long OPERATOR_SET = 18;

    private static final long IR_VERSION = 8;
    static final String MICROSOFT = "com.microsoft";

    private final String name;
    private final GraphBuilder root;
    private final boolean onDevice;
    private final List<Value> inputs = new ArrayList<>();
    private final List<Node> nodes = new ArrayList<>();
    private final Map<String, Value> outputs = new LinkedHashMap<>();
    private final Map<String, Value> constants = new LinkedHashMap<>();
    private final Map<String, long[]> constantLongs = new LinkedHashMap<>();
    private final List<TensorProto> initializers = new ArrayList<>();
    private final Map<String, Value> lengths = new LinkedHashMap<>();
    private int nextName;

    public GraphBuilder(String name) {
        this(name, false);
    }

    /**
     * @param onDevice whether it runs on a device other than the CPU: {@link Operators} then emits nodes that are fast
     * there
     */
    public GraphBuilder(String name, boolean onDevice) {
        this.name = name;
        this.onDevice = onDevice;
        this.root = this;
    }

    private GraphBuilder(String name, GraphBuilder outer) {
        this.name = name;
        this.onDevice = outer.onDevice;
        this.root = outer.root;
    }

    public boolean onDevice() {
        return onDevice;
    }

    /** A graph inside this one, for the body of a loop. */
    public GraphBuilder body(String bodyName) {
        return new GraphBuilder(bodyName, this);
    }

    /** A graph input; an axis that is a single symbol defines the symbol's length for the whole graph. */
    public Value input(String inputName, ElementType type, Shape shape) {
        return input(new Value(inputName, type, shape));
    }

    Value input(Value input) {
        inputs.add(input);
        return input;
    }

    public Value constant(long... values) {
        ByteBuffer bytes = littleEndian(values.length * Long.BYTES);
        Arrays.stream(values).forEach(bytes::putLong);
        Value constant = root.constant(ElementType.INT64, Shape.of(values.length), bytes);
        root.constantLongs.put(constant.name(), values.clone());
        return constant;
    }

    public Value scalar(long value) {
        return root.constant(
                ElementType.INT64, Shape.SCALAR, littleEndian(Long.BYTES).putLong(value));
    }

    public Value scalar(float value) {
        return root.constant(
                ElementType.FLOAT, Shape.SCALAR, littleEndian(Float.BYTES).putFloat(value));
    }

    public Value scalar(boolean value) {
        return root.constant(ElementType.BOOL, Shape.SCALAR, littleEndian(1).put((byte) (value ? 1 : 0)));
    }

    /** The elements of an int64 vector constant of this graph. */
    public long[] longs(Value constant) {
        long[] values = root.constantLongs.get(constant.name());
        if (values == null) {
            throw new IllegalArgumentException(
                    constant + " must be a constant of the graph, but is computed when it runs");
        }
        return values.clone();
    }

    private Value constant(ElementType type, Shape shape, ByteBuffer bytes) {
        ByteString raw = ByteString.copyFrom(bytes.flip());
        String key = type + shape.toString() + Arrays.toString(raw.toByteArray());
        return constants.computeIfAbsent(key, absent -> {
            Value constant = fresh("const", type, shape);
            initializers.add(tensor(constant, raw));
            return constant;
        });
    }

    static TensorProto tensor(Value value, ByteString raw) {
        TensorProto.Builder tensor = TensorProto.newBuilder()
                .setName(value.name())
                .setDataType(value.type().number())
                .setRawData(raw);
        Arrays.stream(value.shape().lengths()).forEach(tensor::addDims);
        return tensor.build();
    }

    private static ByteBuffer littleEndian(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The run-time length of a symbolic axis, as int64 [1]; read from the input that defines the symbol. */
    Value length(String symbol) {
        Value known = root.lengths.get(symbol);
        if (known != null) {
            return known;
        }
        for (Value input : root.inputs) {
            int axis = input.shape().dims().indexOf(Dim.symbol(symbol));
            if (axis >= 0) {
                Value length = root.node(
                                "",
                                "Shape",
                                List.of(input),
                                List.of(root.fresh("len", ElementType.INT64, Shape.of(1))),
                                Attribute.of("start", axis),
                                Attribute.of("end", axis + 1))
                        .output();
                root.lengths.put(symbol, length);
                return length;
            }
        }
        throw new IllegalArgumentException("no input of graph " + root.name + " has an axis of length " + symbol);
    }

    Value fresh(String hint, ElementType type, Shape shape) {
        return new Value(hint + "_" + root.nextName++, type, shape);
    }

    Node node(String domain, String operator, List<Value> operands, List<Value> results, AttributeProto... attributes) {
        Node node = new Node(
                domain,
                operator,
                operands,
                results,
                Arrays.stream(attributes).collect(Collectors.toMap(AttributeProto::getName, attribute -> attribute)));
        nodes.add(node);
        return node;
    }

    /** The nodes so far, in the order they run. */
    public List<Node> nodes() {
        return Collections.unmodifiableList(nodes);
    }

    /** Returns the number of nodes so far. {@link #cut} takes it as the end of the forward pass. */
    public int size() {
        return nodes.size();
    }

    /** Extracts the part of this graph that computes some values, given their output names. */
    public GraphPart part(String partName, Map<String, Value> results) {
        return GraphPart.of(this, partName, results, Set.of());
    }

    /** Extracts the part of this graph that its outputs depend on. */
    public GraphPart whole() {
        return part(name, outputs);
    }

    /**
     * Splits this graph into a forward and a backward pass; see {@link GraphPart#cut}.
     *
     * @param forward number of leading nodes that form the forward pass
     * @param again nodes of the forward pass that the backward pass recomputes
     */
    public GraphPart.Cut cut(
            int forward, Map<String, Value> results, Map<String, Value> gradients, Predicate<Node> again) {
        return GraphPart.cut(this, forward, results, gradients, again);
    }

    List<TensorProto> constants() {
        return root.initializers;
    }

    /** Takes over nodes of another graph, with the constants that they read. */
    void take(List<Node> others, List<TensorProto> theirConstants, int namesTaken) {
        nodes.addAll(others);
        initializers.addAll(theirConstants);
        nextName = Math.max(nextName, namesTaken);
    }

    int namesTaken() {
        return root.nextName;
    }

    GraphBuilder outermost() {
        return root;
    }

    /** Makes a node's result an output under the given name; outputs keep the order of these calls. */
    public void output(String outputName, Value value) {
        if (outputs.put(outputName, asOutput(value)) != null) {
            throw new IllegalArgumentException("graph " + name + " has two outputs named " + outputName);
        }
    }

    /** Makes a value an output under its own name. */
    void output(Value value) {
        Value output = asOutput(value);
        outputs.put(output.name(), output);
    }

    /** An output must be produced by a node of this very graph, and be one output only. */
    private Value asOutput(Value value) {
        boolean computedHere = nodes.stream().anyMatch(node -> node.outputs().contains(value));
        return computedHere && !outputs.containsValue(value) ? value : new Operators(this).identity(value);
    }

    GraphProto graph() {
        Map<String, String> renamed = outputs.entrySet().stream()
                .collect(Collectors.toMap(entry -> entry.getValue().name(), Map.Entry::getKey));
        GraphProto.Builder graph = GraphProto.newBuilder().setName(name);
        nodes.forEach(node -> graph.addNode(node.toProto(value -> renamed.getOrDefault(value, value))));
        graph.addAllInitializer(initializers);
        inputs.forEach(input -> graph.addInput(info(input.name(), input)));
        outputs.forEach((outputName, value) -> graph.addOutput(info(outputName, value)));
        return graph.build();
    }

    /** The finished model. Output renaming does not reach into loop bodies, so a body must not read an output. */
    public ModelProto model() {
        return ModelProto.newBuilder()
                .setIrVersion(IR_VERSION)
                .setProducerName("millrace")
                .setGraph(graph())
                .addOpsetImport(OperatorSetIdProto.newBuilder().setDomain("").setVersion(OPERATOR_SET))
                .addOpsetImport(
                        OperatorSetIdProto.newBuilder().setDomain(MICROSOFT).setVersion(1))
                .build();
    }

    private static ValueInfoProto info(String valueName, Value value) {
        TensorShapeProto.Builder shape = TensorShapeProto.newBuilder();
        for (Dim dim : value.shape().dims()) {
            shape.addDim(
                    dim.isConstant()
                            ? TensorShapeProto.Dimension.newBuilder().setDimValue(dim.length())
                            : TensorShapeProto.Dimension.newBuilder().setDimParam(dim.toString()));
        }
        return ValueInfoProto.newBuilder()
                .setName(valueName)
                .setType(TypeProto.newBuilder()
                        .setTensorType(TypeProto.Tensor.newBuilder()
                                .setElemType(value.type().number())
                                .setShape(shape)))
                .build();
    }
}
