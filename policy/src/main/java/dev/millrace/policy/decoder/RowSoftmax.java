package dev.millrace.policy.decoder;

import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The softmax of each row's logits, and the figures of the row's token.
 *
 * @param logits          as the head gave them, [rows, vocabulary]
 * @param all             log-probs, [rows, vocabulary] or as many as were kept
 * @param probs           likewise
 * @param logProbs        of the targets, [rows]
 * @param entropies       [rows]
 * @param sumSquaredProbs [rows]
 */
record RowSoftmax(Value logits, Value all, Value probs, Value logProbs, Value entropies, Value sumSquaredProbs) {

    /**
     * Inputs for the rows in addition to their logits.
     *
     * @param targets            int64 [rows], ids or places among the kept
     * @param inverseTemperature [rows, 1]
     * @param kept               int64 [rows, kept], the tokens that the softmax is over; null for the whole vocabulary
     * @param keptMask           [rows, kept], added to their logits; null with {@code kept}
     */
    record Inputs(
            Value targets,
            Value inverseTemperature,
            @Nullable Value kept,
            @Nullable Value keptMask) {

        static Inputs declare(GraphBuilder graph, Dim count, Vocabulary vocabulary) {
            boolean cut = vocabulary == Vocabulary.CUT;
            Shape kept = Shape.of(count, Dim.symbol("M"));
            return new Inputs(
                    graph.input(SequenceGraph.TARGETS, ElementType.INT64, Shape.of(count)),
                    graph.input(SequenceGraph.INVERSE_TEMPERATURE, ElementType.FLOAT, Shape.of(count, Dim.ONE)),
                    cut ? graph.input(SequenceGraph.KEPT, ElementType.INT64, kept) : null,
                    cut ? graph.input(SequenceGraph.KEPT_MASK, ElementType.FLOAT, kept) : null);
        }

        /** Maps each of them, for example to a part of its rows. */
        Inputs map(UnaryOperator<Value> change) {
            return new Inputs(
                    change.apply(targets),
                    change.apply(inverseTemperature),
                    kept == null ? null : change.apply(kept),
                    keptMask == null ? null : change.apply(keptMask));
        }
    }

    static RowSoftmax append(Operators ops, Value logits, Inputs inputs) {
        Value tempered = inputs.kept() == null || inputs.keptMask() == null
                ? ops.mul(logits, inputs.inverseTemperature())
                : ops.add(
                        ops.mul(ops.gatherElements(logits, inputs.kept(), 1), inputs.inverseTemperature()),
                        inputs.keptMask());
        Value all = ops.logSoftmax(tempered, -1);
        Value probs = ops.exp(all);
        Value logProbs = ops.squeeze(ops.gatherElements(all, ops.unsqueeze(inputs.targets(), -1), 1), 1);
        return new RowSoftmax(
                logits, all, probs, logProbs, ops.neg(rowDots(ops, probs, all)), rowDots(ops, probs, probs));
    }

    /**
     * {@code sum_i a_i b_i} of each row, as products of single rows: the CPU's ReduceSum groups its terms by the memory
     * alignment of the row, which would make the last bit depend on the position in the batch.
     */
    static Value rowDots(Operators ops, Value a, Value b) {
        Value dots = ops.fusedMatMul(ops.unsqueeze(a, 1), ops.unsqueeze(b, 1), false, true, 1f);
        return ops.squeeze(ops.squeeze(dots, 2), 1);
    }
}
