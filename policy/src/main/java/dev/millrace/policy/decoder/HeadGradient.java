package dev.millrace.policy.decoder;

import dev.millrace.policy.autodiff.ReverseMode;
import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.GraphPart;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Forward and backward pass through the last norm and the head, for some wanted rows. Inputs:
 * {@link LayerGradient#INPUT} [B*L, hidden], the last layer's output; {@link SequenceGraph#ROWS} int64 [S]; and the
 * inputs of {@link SequenceGraph} for S rows. Outputs: those of {@link SequenceGraph} for these rows, and
 * {@link #ROW_GRADIENT} [S, hidden], or on a device {@link LayerGradient#INPUT_GRADIENT} [B*L, hidden], which is {@link #SUM} plus the
 * rows' parts. The pass adds to the gradients of the {@link #trained} tensors like {@link LayerGradient}.
 *
 * <p>Rows that do not fit into memory are processed in chunks: logits, and all values as wide, exist for one chunk at a
 * time.
 */
public final class HeadGradient {
    /** Gradient of each wanted row. */
    public static final String ROW_GRADIENT = "gradient.rows";
    /** Gradient of the last layer's output from other rows. */
    public static final String SUM = LayerGradient.sumOf(LayerGradient.INPUT);

    private static final Dim OF_A_CHUNK = Dim.symbol("S");

    private final List<String> trained;
    private final GraphPart graph;

    private HeadGradient(List<String> trained, GraphPart graph) {
        this.trained = trained;
        this.graph = graph;
    }

    /**
     * @param isTrained whether norm and head are differentiated by
     * @param onDevice whether it is for a device other than the CPU
     */
    public static HeadGradient of(DecoderShape shape, boolean isTrained, Vocabulary vocabulary, boolean onDevice) {
        GraphBuilder graph = new GraphBuilder("head", onDevice);
        Transformer transformer = Transformer.declare(shape, graph);
        Operators ops = transformer.ops();
        Dim all = Dim.symbol("B").times(Dim.symbol("L"));
        Value x = graph.input(LayerGradient.INPUT, ElementType.FLOAT, Shape.of(all, Dim.of(shape.hiddenSize())));
        Value indices = graph.input(SequenceGraph.ROWS, ElementType.INT64, Shape.of(OF_A_CHUNK));
        Value rows = ops.gather(x, indices);
        Value hidden = transformer.finalNorm(rows);
        RowSoftmax softmax = RowSoftmax.append(
                ops, transformer.logits(hidden), RowSoftmax.Inputs.declare(graph, OF_A_CHUNK, vocabulary));

        List<String> names = new ArrayList<>();
        if (isTrained) {
            names.add(TensorNames.FINAL_NORM);
            shape.head().pieces().forEach(piece -> names.add(piece.name()));
            if (shape.valueHead()) {
                names.addAll(List.of(TensorNames.VALUE_WEIGHT, TensorNames.VALUE_BIAS));
            }
        }
        Map<Value, Value> sums = new LinkedHashMap<>();
        for (String name : names) {
            Value weight = transformer.weight(name);
            sums.put(weight, graph.input(LayerGradient.sumOf(name), ElementType.FLOAT, weight.shape()));
        }
        List<Value> leaves = new ArrayList<>(sums.keySet());
        leaves.add(rows);
        Shape perRow = Shape.of(OF_A_CHUNK);
        Map<Value, Value> seeds = new LinkedHashMap<>();
        seeds.put(softmax.logProbs(), graph.input(SequenceGraph.LOG_PROB_COEFFICIENTS, ElementType.FLOAT, perRow));
        seeds.put(softmax.entropies(), graph.input(SequenceGraph.ENTROPY_COEFFICIENTS, ElementType.FLOAT, perRow));
        Map<String, Value> outputs = new LinkedHashMap<>();
        if (shape.valueHead()) {
            Value values = transformer.values(hidden);
            seeds.put(values, graph.input(SequenceGraph.VALUE_COEFFICIENTS, ElementType.FLOAT, perRow));
            outputs.put(SequenceGraph.VALUES, values);
        }
        Map<Value, Value> found = ReverseMode.append(graph, seeds, leaves, Map.of(), sums);

        outputs.put(SequenceGraph.LOG_PROBS, softmax.logProbs());
        outputs.put(SequenceGraph.ENTROPIES, softmax.entropies());
        outputs.put(SequenceGraph.SUM_SQUARED_PROBS, softmax.sumSquaredProbs());
        Value ofRows = Objects.requireNonNull(found.get(rows), ROW_GRADIENT);
        if (onDevice) {
            Value sum = graph.input(SUM, ElementType.FLOAT, x.shape());
            outputs.put(LayerGradient.INPUT_GRADIENT, ops.scatterNdAdd(sum, ops.unsqueeze(indices, -1), ofRows));
        } else {
            outputs.put(ROW_GRADIENT, ofRows);
        }
        names.forEach(name -> outputs.put(
                LayerGradient.gradientOf(name), Objects.requireNonNull(found.get(transformer.weight(name)), name)));
        return new HeadGradient(List.copyOf(names), graph.part("head", outputs));
    }

    public List<String> trained() {
        return trained;
    }

    public GraphPart graph() {
        return graph;
    }
}
