package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.Map;
import java.util.TreeMap;

/**
 * A graph's routing as inputs and outputs. Input of each layer: {@link #replayed} int64 [B, L, experts of a token], the
 * experts to use, or {@link #OWN_CHOICE} for the router's own choice. Outputs of each layer: {@link #experts} int64 and
 * {@link #weights} float32 with the same number of rows.
 *
 * <p>Only the ids are replayed. The pass computes the weights of these experts itself, so that a gradient reaches the
 * router.
 */
public final class RoutingPorts implements Routing {
    /** Used instead of an id: the router decides. */
    public static final int OWN_CHOICE = -1;

    private final GraphBuilder graph;
    private final Experts experts;
    private final Dim batch;
    private final Dim length;
    private final Map<Integer, Value> ids = new TreeMap<>();
    private final Map<Integer, Value> weights = new TreeMap<>();

    RoutingPorts(GraphBuilder graph, Experts experts, Dim batch, Dim length) {
        this.graph = graph;
        this.experts = experts;
        this.batch = batch;
        this.length = length;
    }

    /** Name of the input that decides a layer's routing. */
    public static String replayed(int layer) {
        return "replayed_experts." + layer;
    }

    /** Name of the output with a layer's experts. */
    public static String experts(int layer) {
        return "routed_experts." + layer;
    }

    public static String weights(int layer) {
        return "router_weights." + layer;
    }

    @Override
    public Value chosen(Operators ops, int layer, Value own) {
        Dim perToken = Dim.of(experts.perToken());
        Value given = graph.input(replayed(layer), ElementType.INT64, Shape.of(batch, length, perToken));
        Value byRow = ops.reshape(given, own.shape());
        return ops.where(ops.less(byRow, graph.scalar(0L)), own, byRow);
    }

    @Override
    public void took(int layer, Value ofExperts, Value ofWeights) {
        ids.put(layer, ofExperts);
        weights.put(layer, ofWeights);
    }

    /** Makes the used experts outputs. */
    void addOutputs() {
        ids.forEach((layer, value) -> graph.output(experts(layer), value));
        weights.forEach((layer, value) -> graph.output(weights(layer), value));
    }
}
