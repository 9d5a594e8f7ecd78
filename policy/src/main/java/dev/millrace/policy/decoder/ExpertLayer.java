package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.Map;

/**
 * {@link Experts} written into a graph: each expert computes only the rows that were routed to it.
 *
 * <p>Every expert gets two rows of zeros after its own, whose results are dropped. Without them a single row would take
 * another code path in the product kernels, with other roundings, and a token's results must not depend on how many
 * tokens its expert has. A row's sum goes over its experts in the order of their numbers, not in the router's order.
 */
final class ExpertLayer {
    private static final long PADDING = 2;

    private final Experts experts;
    private final Transformer transformer;
    private final Operators ops;

    ExpertLayer(Experts experts, Transformer transformer) {
        this.experts = experts;
        this.transformer = transformer;
        this.ops = transformer.ops();
    }

    private static String tokensOf(int layer, int expert) {
        return "tokens_of_expert_" + layer + "_" + expert;
    }

    private static String paddedTokensOf(int layer, int expert) {
        return "padded_" + tokensOf(layer, expert);
    }

    /** Adds the axis lengths that a router decides, assuming an equal number of tokens per expert. */
    static void addEvenLengths(Experts experts, int layer, long tokens, Map<String, Long> lengths) {
        for (int expert = 0; expert < experts.count(); expert++) {
            long each = (tokens * experts.perToken() + experts.count() - 1) / experts.count();
            lengths.put(tokensOf(layer, expert), each);
            lengths.put(paddedTokensOf(layer, expert), each + PADDING);
        }
    }

    /** [rows, hidden] to [rows, hidden]. */
    Value apply(Value h, int layer, Routing routing) {
        Value logits = transformer.rounded(transformer.product(h, TensorNames.router(layer)));
        Value probabilities = ops.softmax(logits, -1);
        Value ids = routing.chosen(
                ops, layer, ops.top(probabilities, experts.perToken()).get(1));
        Value taken = ops.gatherElements(probabilities, ids, 1);
        Value weights =
                transformer.rounded(experts.normalised() ? ops.div(taken, ops.reduceSum(taken, true, -1)) : taken);
        routing.took(layer, ids, weights);

        Shape flat = Shape.of(h.dim(0).times(Dim.of(experts.perToken())));
        Value idOfPlace = ops.reshape(ids, flat);
        Value weightOfPlace = ops.reshape(weights, flat);
        Value sum = ops.zeros(h.shape());
        for (int expert = 0; expert < experts.count(); expert++) {
            Dim count = Dim.symbol(tokensOf(layer, expert));
            Value places = ops.places(ops.equal(idOfPlace, ops.graph().scalar((long) expert)), count);
            Value rows = ops.div(places, ops.graph().scalar((long) experts.perToken()));
            Value weight = ops.unsqueeze(ops.gather(weightOfPlace, places), 1);
            Value out = transformer.rounded(ops.mul(compute(ops.gather(h, rows), layer, expert), weight));
            sum = transformer.rounded(ops.scatterNdAdd(sum, ops.unsqueeze(rows, 1), out));
        }
        return sum;
    }

    private Value compute(Value rows, int layer, int expert) {
        Dim padded = Dim.symbol(paddedTokensOf(layer, expert));
        String prefix = TensorNames.expert(layer, expert);
        Value y = transformer.swiGlu(
                ops.padRows(rows, PADDING, padded),
                prefix + "gate_proj",
                prefix + "up_proj",
                prefix + "down_proj",
                false);
        return ops.dropRows(y, PADDING, rows.dim(0));
    }
}
