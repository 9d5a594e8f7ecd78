package dev.millrace.policy.onnx;

/** A named tensor in a graph: an input, a constant, or a node's result. */
public record Value(String name, ElementType type, Shape shape) {

    public Dim dim(int axis) {
        return shape.dim(axis);
    }

    @Override
    public String toString() {
        return name + " " + type + shape;
    }
}
