package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.List;

/** The router decides; records its choices layer by layer. */
final class RoutingNotes implements Routing {
    private final List<Value> experts = new ArrayList<>();
    private final List<Value> weights = new ArrayList<>();

    @Override
    public Value chosen(Operators ops, int layer, Value own) {
        return own;
    }

    @Override
    public void took(int layer, Value ofExperts, Value ofWeights) {
        experts.add(ofExperts);
        weights.add(ofWeights);
    }

    /** Of each layer int64 [rows, experts of a token]. */
    List<Value> experts() {
        return experts;
    }

    /** Of the same shape. */
    List<Value> weights() {
        return weights;
    }
}
