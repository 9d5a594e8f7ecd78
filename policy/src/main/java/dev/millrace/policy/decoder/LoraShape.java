package dev.millrace.policy.decoder;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;

/**
 * Sizes of a low-rank adapter (Hu et al., 2021): a linear layer {@code W} of {@code [out, in]} becomes
 * {@code W + (alpha / rank) B A}, with A of {@code [rank, in]} and B of {@code [out, rank]}. The rest of the decoder
 * stays unchanged.
 *
 * @param rank          at least 1
 * @param alpha {@code alpha / rank} scales the added product; finite and above 0
 * @param targetModules the linear layers that get an adapter, of {@link #MODULES}, each once
 */
public record LoraShape(int rank, double alpha, List<String> targetModules) {
    /** Every linear layer of a decoder's block, as Hugging Face names them, in the order of {@link DecoderShape#tensors()}. */
    public static final List<String> MODULES =
            List.of("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj");

    private static final String WEIGHT = ".weight";
    private static final String A = ".lora_A.weight";
    private static final String B = ".lora_B.weight";

    public LoraShape {
        targetModules = List.copyOf(targetModules);
        if (rank < 1) {
            throw new IllegalArgumentException("rank must be at least 1: " + rank);
        }
        if (!(alpha > 0 && alpha < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("alpha must be finite and above 0: " + alpha);
        }
        if (targetModules.isEmpty()) {
            throw new IllegalArgumentException("target_modules must name a linear layer at least, of " + MODULES);
        }
        for (String module : targetModules) {
            if (!MODULES.contains(module)) {
                throw new IllegalArgumentException("target_modules names " + module
                        + ", which is not a linear layer of a decoder's block; these are " + MODULES);
            }
        }
        if (new HashSet<>(targetModules).size() < targetModules.size()) {
            throw new IllegalArgumentException("target_modules names a layer twice: " + targetModules);
        }
    }

    /** Factor on {@code B A}. */
    public float scale() {
        return (float) (alpha / rank);
    }

    /**
     * The weights of a decoder that get an adapter, in its order.
     *
     * @throws IllegalArgumentException if one lies in several tensors
     */
    public List<TensorSpec> adapted(DecoderShape shape) {
        return shape.wholes().stream()
                .filter(whole ->
                        targetModules.stream().anyMatch(module -> whole.name().endsWith("." + module + WEIGHT)))
                .map(whole -> inOnePiece(whole, shape))
                .toList();
    }

    private static TensorSpec inOnePiece(WholeTensor whole, DecoderShape shape) {
        if (whole.isCut()) {
            throw new IllegalArgumentException(String.format(
                    Locale.ROOT,
                    "%s has %,d numbers and lies in %d tensors of at most %,d, and an adapter applies to one"
                            + " tensor; leave %s out of target_modules",
                    whole.name(),
                    whole.elementCount(),
                    whole.pieces().size(),
                    shape.maxTensorElements(),
                    module(whole.name()).substring(module(whole.name()).lastIndexOf('.') + 1)));
        }
        return whole.pieces().get(0);
    }

    /**
     * The tensors of the adapter: A and B of each of {@link #adapted}, in that order.
     *
     * @throws IllegalArgumentException if a layer is so small that its adapter would not be of lower rank
     */
    public List<TensorSpec> tensors(DecoderShape shape) {
        List<TensorSpec> tensors = new ArrayList<>();
        for (TensorSpec spec : adapted(shape)) {
            long out = spec.dims().get(0);
            long in = spec.dims().get(1);
            if (rank > Math.min(out, in)) {
                throw new IllegalArgumentException(
                        "rank is " + rank + ", and " + spec.name() + " is " + out + " x " + in
                                + ", which has no higher rank than " + Math.min(out, in)
                                + "; give a smaller rank, or leave the layer out of target_modules");
            }
            tensors.add(TensorSpec.of(a(spec.name()), rank, in));
            tensors.add(TensorSpec.of(b(spec.name()), out, rank));
        }
        return List.copyOf(tensors);
    }

    public long parameterCount(DecoderShape shape) {
        return tensors(shape).stream().mapToLong(TensorSpec::elementCount).sum();
    }

    /** The name of A of a weight. */
    public static String a(String weight) {
        return module(weight) + A;
    }

    /** The name of B of a weight. */
    public static String b(String weight) {
        return module(weight) + B;
    }

    private static String module(String weight) {
        return weight.substring(0, weight.length() - WEIGHT.length());
    }
}
