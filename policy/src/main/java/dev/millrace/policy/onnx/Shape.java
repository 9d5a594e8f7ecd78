package dev.millrace.policy.onnx;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Axis lengths of a value in a graph, outermost first. */
public record Shape(List<Dim> dims) {
    public static final Shape SCALAR = new Shape(List.of());

    public Shape {
        dims = List.copyOf(dims);
    }

    public static Shape of(Dim... dims) {
        return new Shape(List.of(dims));
    }

    public static Shape of(long... dims) {
        return new Shape(Arrays.stream(dims).mapToObj(Dim::of).toList());
    }

    public int rank() {
        return dims.size();
    }

    /** One axis; negative numbers count from the end. */
    public Dim dim(int axis) {
        return dims.get(axis(axis));
    }

    /** The axis as a number from the front, refused when there is no such axis. */
    public int axis(int axis) {
        int positive = axis < 0 ? axis + rank() : axis;
        if (positive < 0 || positive >= rank()) {
            throw new IllegalArgumentException("axis " + axis + " of " + this + " does not exist");
        }
        return positive;
    }

    public Shape with(int axis, Dim dim) {
        List<Dim> changed = new ArrayList<>(dims);
        changed.set(axis(axis), dim);
        return new Shape(changed);
    }

    public Dim product() {
        return dims.stream().reduce(Dim.ONE, Dim::times);
    }

    /** All lengths, when every one is known. */
    public long[] lengths() {
        return dims.stream().mapToLong(Dim::length).toArray();
    }

    /** Broadcasts two shapes by numpy's rules. */
    public Shape broadcast(Shape other) {
        int rank = Math.max(rank(), other.rank());
        List<Dim> result = new ArrayList<>();
        for (int back = rank; back >= 1; back--) {
            Dim a = back > rank() ? Dim.ONE : dim(-back);
            Dim b = back > other.rank() ? Dim.ONE : other.dim(-back);
            if (!a.equals(b) && !a.isOne() && !b.isOne()) {
                throw new IllegalArgumentException(
                        "shapes " + this + " and " + other + " do not broadcast: " + a + " against " + b);
            }
            result.add(a.isOne() ? b : a);
        }
        return new Shape(result);
    }

    @Override
    public String toString() {
        return dims.toString();
    }
}
