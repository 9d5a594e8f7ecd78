package dev.millrace.policy.onnx;

import java.util.ArrayList;
import java.util.List;

/**
 * Length of one axis, known when the graph is built or only when it runs: {@code factor * symbol * symbol * ...}.
 *
 * <p>Products are enough to follow every reshape of a decoder ({@code [B*L, H*16]} to {@code [B, L, H, 16]}); sums are not
 * represented and get a symbol of their own.
 *
 * @param factor  the known part, at least 0
 * @param symbols names of the unknown parts, sorted; empty for a constant
 */
public record Dim(long factor, List<String> symbols) {
    public static final Dim ONE = of(1);

    public Dim {
        if (factor < 0) {
            throw new IllegalArgumentException("an axis cannot have length " + factor);
        }
        symbols = symbols.stream().sorted().toList();
    }

    public static Dim of(long length) {
        return new Dim(length, List.of());
    }

    public static Dim symbol(String name) {
        return new Dim(1, List.of(name));
    }

    public boolean isConstant() {
        return symbols.isEmpty();
    }

    public boolean isOne() {
        return isConstant() && factor == 1;
    }

    public Dim times(Dim other) {
        List<String> all = new ArrayList<>(symbols);
        all.addAll(other.symbols);
        return new Dim(Math.multiplyExact(factor, other.factor), all);
    }

    /** The known length. */
    public long length() {
        if (!isConstant()) {
            throw new IllegalStateException("the length " + this + " is known only when the graph runs");
        }
        return factor;
    }

    @Override
    public String toString() {
        if (isConstant()) {
            return Long.toString(factor);
        }
        return (factor == 1 ? "" : factor + "*") + String.join("*", symbols);
    }
}
