package dev.millrace.policy.onnx;

import dev.millrace.policy.onnx.proto.AttributeProto;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Appends operators to a graph and infers the shape of their results.
 *
 * <p>Axes may be negative, counted from the end. Operand shapes that do not fit are refused here, with both shapes, rather
 * than by the runtime when the graph is loaded.
 */
public final class Operators {
    private final GraphBuilder graph;

    public Operators(GraphBuilder graph) {
        this.graph = graph;
    }

    public GraphBuilder graph() {
        return graph;
    }

    // ---- elementwise

    public Value add(Value a, Value b) {
        return binary("Add", a, b);
    }

    public Value sub(Value a, Value b) {
        return binary("Sub", a, b);
    }

    public Value mul(Value a, Value b) {
        return binary("Mul", a, b);
    }

    public Value mul(Value a, float factor) {
        return mul(a, graph.scalar(factor));
    }

    public Value div(Value a, Value b) {
        return binary("Div", a, b);
    }

    public Value neg(Value x) {
        return unary("Neg", x);
    }

    public Value exp(Value x) {
        return unary("Exp", x);
    }

    public Value log(Value x) {
        return unary("Log", x);
    }

    public Value sqrt(Value x) {
        return unary("Sqrt", x);
    }

    public Value sigmoid(Value x) {
        return unary("Sigmoid", x);
    }

    public Value abs(Value x) {
        return unary("Abs", x);
    }

    /** To the nearest integer, halves to even. */
    public Value round(Value x) {
        return unary("Round", x);
    }

    public Value max(Value a, Value b) {
        return binary("Max", a, b);
    }

    public Value identity(Value x) {
        return unary("Identity", x);
    }

    public Value less(Value a, Value b) {
        return compare("Less", a, b);
    }

    public Value lessOrEqual(Value a, Value b) {
        return compare("LessOrEqual", a, b);
    }

    public Value equal(Value a, Value b) {
        return compare("Equal", a, b);
    }

    public Value where(Value condition, Value then, Value otherwise) {
        return append(
                "Where",
                List.of(condition, then, otherwise),
                then.type(),
                condition.shape().broadcast(then.shape()).broadcast(otherwise.shape()));
    }

    public Value cast(Value x, ElementType type) {
        return append("Cast", List.of(x), type, x.shape(), Attribute.of("to", type.number()));
    }

    private Value unary(String operator, Value x) {
        return append(operator, List.of(x), x.type(), x.shape());
    }

    private Value binary(String operator, Value a, Value b) {
        return append(operator, List.of(a, b), a.type(), a.shape().broadcast(b.shape()));
    }

    private Value compare(String operator, Value a, Value b) {
        return append(operator, List.of(a, b), ElementType.BOOL, a.shape().broadcast(b.shape()));
    }

    // ---- products

    public Value matMul(Value a, Value b) {
        return append("MatMul", List.of(a, b), a.type(), product(a, b, false, false));
    }

    /** The exact product of matrices of 8-bit integers, int32. */
    public Value matMulInteger(Value a, Value b) {
        return append("MatMulInteger", List.of(a, b), ElementType.INT32, product(a, b, false, false));
    }

    /** {@code alpha * a' b'} over the last two axes, where ' is an optional transposition. */
    public Value fusedMatMul(Value a, Value b, boolean transposeA, boolean transposeB, float alpha) {
        return result(graph.node(
                GraphBuilder.MICROSOFT,
                "FusedMatMul",
                List.of(a, b),
                List.of(graph.fresh("FusedMatMul", a.type(), product(a, b, transposeA, transposeB))),
                Attribute.of("transA", transposeA ? 1 : 0),
                Attribute.of("transB", transposeB ? 1 : 0),
                Attribute.of("alpha", alpha)));
    }

    /** {@code a' b'} of two matrices. */
    public Value gemm(Value a, Value b, boolean transposeA, boolean transposeB) {
        return gemm(List.of(a, b), transposeA, transposeB);
    }

    /** {@code a' b' + bias} of two matrices; bias is a row added to every row, or a whole matrix. */
    public Value gemm(Value a, Value b, Value bias, boolean transposeA, boolean transposeB) {
        return gemm(List.of(a, b, bias), transposeA, transposeB);
    }

    private Value gemm(List<Value> operands, boolean transposeA, boolean transposeB) {
        Value a = operands.get(0);
        if (a.shape().rank() != 2 || operands.get(1).shape().rank() != 2) {
            throw new IllegalArgumentException("Gemm multiplies two matrices, not " + a + " and " + operands.get(1));
        }
        return append(
                "Gemm",
                operands,
                a.type(),
                product(a, operands.get(1), transposeA, transposeB),
                Attribute.of("transA", transposeA ? 1 : 0),
                Attribute.of("transB", transposeB ? 1 : 0));
    }

    private static Shape product(Value a, Value b, boolean transposeA, boolean transposeB) {
        if (a.shape().rank() < 2 || b.shape().rank() < 2) {
            throw new IllegalArgumentException(
                    "a matrix product needs at least two axes on each side: " + a + ", " + b);
        }
        Dim inA = a.dim(transposeA ? -2 : -1);
        Dim inB = b.dim(transposeB ? -1 : -2);
        if (!inA.equals(inB)) {
            throw new IllegalArgumentException(
                    "inner axes differ in the product of " + a + " and " + b + ": " + inA + " against " + inB);
        }
        Shape batch = new Shape(a.shape().dims().subList(0, a.shape().rank() - 2))
                .broadcast(new Shape(b.shape().dims().subList(0, b.shape().rank() - 2)));
        List<Dim> dims = new ArrayList<>(batch.dims());
        dims.add(a.dim(transposeA ? -1 : -2));
        dims.add(b.dim(transposeB ? -2 : -1));
        return new Shape(dims);
    }

    // ---- layout

    public Value transpose(Value x, int... permutation) {
        return append(
                "Transpose",
                List.of(x),
                x.type(),
                new Shape(Arrays.stream(permutation).mapToObj(x::dim).toList()),
                Attribute.of("perm", permutation));
    }

    /** The same elements under other axes; lengths known only at run time are read from the graph's inputs. */
    public Value reshape(Value x, Shape target) {
        if (!x.shape().product().equals(target.product())) {
            throw new IllegalArgumentException("cannot reshape " + x + " into " + target);
        }
        return x.shape().equals(target) ? x : append("Reshape", List.of(x, lengths(target, true)), x.type(), target);
    }

    public Value unsqueeze(Value x, int axis) {
        List<Dim> dims = new ArrayList<>(x.shape().dims());
        dims.add(axis < 0 ? axis + x.shape().rank() + 1 : axis, Dim.ONE);
        return append("Unsqueeze", List.of(x, graph.constant(axis)), x.type(), new Shape(dims));
    }

    public Value squeeze(Value x, int axis) {
        List<Dim> dims = new ArrayList<>(x.shape().dims());
        if (!dims.remove(x.shape().axis(axis)).isOne()) {
            throw new IllegalArgumentException("cannot squeeze axis " + axis + " of " + x + ": its length is not 1");
        }
        return append("Squeeze", List.of(x, graph.constant(axis)), x.type(), new Shape(dims));
    }

    public Value expand(Value x, Shape target) {
        return append(
                "Expand",
                List.of(x, lengths(target, false)),
                x.type(),
                x.shape().broadcast(target));
    }

    /** Joins values along an axis; the joint length is given when it is not a sum of known ones. */
    public Value concat(int axis, Dim joint, Value... parts) {
        return append(
                "Concat",
                List.of(parts),
                parts[0].type(),
                parts[0].shape().with(axis, joint),
                Attribute.of("axis", axis));
    }

    public Value concat(int axis, Value... parts) {
        return concat(
                axis,
                Dim.of(Arrays.stream(parts)
                        .mapToLong(part -> part.dim(axis).length())
                        .sum()),
                parts);
    }

    public List<Value> split(Value x, int axis, long... sizes) {
        List<Value> parts = Arrays.stream(sizes)
                .mapToObj(size -> graph.fresh("Split", x.type(), x.shape().with(axis, Dim.of(size))))
                .toList();
        return graph.node("", "Split", List.of(x, graph.constant(sizes)), parts, Attribute.of("axis", axis))
                .outputs();
    }

    /** Elements {@code start .. end-1} of one axis. */
    public Value slice(Value x, int axis, long start, long end) {
        return slice(x, axis, start, end, Dim.of(end - start));
    }

    /** Elements from {@code start} on; their number is given since it is not always a difference of known ones. */
    public Value sliceFrom(Value x, int axis, long start, Dim count) {
        return slice(x, axis, start, Long.MAX_VALUE, count);
    }

    private Value slice(Value x, int axis, long start, long end, Dim count) {
        return append(
                "Slice",
                List.of(x, graph.constant(start), graph.constant(end), graph.constant(axis)),
                x.type(),
                x.shape().with(axis, count));
    }

    /** Zeros before and after one axis. */
    public Value pad(Value x, int axis, long before, long after) {
        return append(
                "Pad",
                List.of(x, graph.constant(before, after), graph.scalar(0f), graph.constant(axis)),
                x.type(),
                x.shape().with(axis, Dim.of(before + x.dim(axis).length() + after)));
    }

    /**
     * Appends rows of zeros to a matrix; the resulting row count is given, since sums of unknown lengths have no
     * symbol.
     */
    public Value padRows(Value x, long count, Dim padded) {
        return append(
                "Pad",
                List.of(x, graph.constant(0, count), graph.scalar(0f), graph.constant(0)),
                x.type(),
                x.shape().with(0, padded));
    }

    /** All rows except the last ones; their number is given. */
    public Value dropRows(Value x, long count, Dim left) {
        return slice(x, 0, 0, -count, left);
    }

    /** Zeros of a shape, float32. */
    public Value zeros(Shape shape) {
        Value lengths = lengths(shape, false);
        return append("ConstantOfShape", List.of(lengths), ElementType.FLOAT, shape);
    }

    /** The axis lengths as an int64 vector; one unknown may be left for the runtime to infer, as -1. */
    private Value lengths(Shape shape, boolean mayInfer) {
        long unknown = shape.dims().stream().filter(dim -> !dim.isConstant()).count();
        if (unknown == 0 || unknown == 1 && mayInfer) {
            return graph.constant(shape.dims().stream()
                    .mapToLong(dim -> dim.isConstant() ? dim.length() : -1)
                    .toArray());
        }
        GraphBuilder outer = graph.outermost();
        Operators ops = new Operators(outer);
        Value[] lengths = new Value[shape.rank()];
        for (int axis = 0; axis < lengths.length; axis++) {
            Dim dim = shape.dim(axis);
            lengths[axis] = dim.symbols().stream().map(outer::length).reduce(outer.constant(dim.factor()), ops::mul);
        }
        return ops.concat(0, lengths);
    }

    /**
     * Zeros of a shape that is computed.
     *
     * @param lengths int64 [rank]
     */
    public Value zeros(Value lengths, Shape shape) {
        return append("ConstantOfShape", List.of(lengths), ElementType.FLOAT, shape);
    }

    /** The length of an axis whose symbol an input of the graph defines, as an int64 scalar. */
    public Value length(Dim axis) {
        if (axis.factor() != 1 || axis.symbols().size() != 1) {
            throw new IllegalArgumentException("the length " + axis + " is not one symbol");
        }
        Value length = graph.outermost().length(axis.symbols().get(0));
        return append("Squeeze", List.of(length, graph.constant(0)), length.type(), Shape.SCALAR);
    }

    // ---- indexing

    /** Whole slices along axis 0, one per index. */
    public Value gather(Value data, Value indices) {
        List<Dim> dims = new ArrayList<>(indices.shape().dims());
        dims.addAll(data.shape().dims().subList(1, data.shape().rank()));
        return append("Gather", List.of(data, indices), data.type(), new Shape(dims), Attribute.of("axis", 0));
    }

    public Value gatherElements(Value data, Value indices, int axis) {
        return append(
                "GatherElements", List.of(data, indices), data.type(), indices.shape(), Attribute.of("axis", axis));
    }

    /** {@code data} with {@code updates} added to the slices of axis 0 that {@code indices [.., 1]} name. */
    public Value scatterNdAdd(Value data, Value indices, Value updates) {
        return append(
                "ScatterND",
                List.of(data, indices, updates),
                data.type(),
                data.shape(),
                Attribute.of("reduction", "add"));
    }

    /**
     * Gathers rows of {@code data} by indices of its leading axes: {@code indices [.., k]}, one for each of the first k
     * axes.
     *
     * @return [.., the axes behind the first k]
     */
    public Value gatherRows(Value data, Value indices) {
        return append("GatherND", List.of(data, indices), data.type(), rows(data, indices));
    }

    /** {@code data} with the rows at {@code indices [.., k]} replaced; for repeated indices either value. */
    public Value scatterRows(Value data, Value indices, Value updates) {
        if (!rows(data, indices).equals(updates.shape())) {
            throw new IllegalArgumentException("rows of " + rows(data, indices) + " and updates of " + updates.shape());
        }
        return append("ScatterND", List.of(data, indices, updates), data.type(), data.shape());
    }

    private static Shape rows(Value data, Value indices) {
        List<Dim> dims = new ArrayList<>(indices.shape().dims());
        int named = Math.toIntExact(dims.remove(dims.size() - 1).length());
        dims.addAll(data.shape().dims().subList(named, data.shape().rank()));
        return new Shape(dims);
    }

    public Value scatterElementsAdd(Value data, Value indices, Value updates, int axis) {
        return append(
                "ScatterElements",
                List.of(data, indices, updates),
                data.type(),
                data.shape(),
                Attribute.of("axis", axis),
                Attribute.of("reduction", "add"));
    }

    /** Where a vector of conditions holds, upwards: int64 [count]. */
    public Value places(Value condition, Dim count) {
        if (condition.shape().rank() != 1) {
            throw new IllegalArgumentException("places are those of a vector, not of " + condition);
        }
        return squeeze(append("NonZero", List.of(condition), ElementType.INT64, Shape.of(Dim.ONE, count)), 0);
    }

    // ---- reductions and along one axis

    /**
     * Sums along axes. On a device, sums along the last axis or all other axes are products with ones, fifty times as
     * fast as a reduction.
     */
    public Value reduceSum(Value x, boolean keepAxes, int... axes) {
        int rank = x.shape().rank();
        if (graph.onDevice() && x.type() == ElementType.FLOAT && rank > 1) {
            if (axes.length == 1 && x.shape().axis(axes[0]) == rank - 1) {
                Value sums = matMul(x, ones(x.dim(-1)));
                return keepAxes ? sums : squeeze(sums, -1);
            }
            if (Arrays.equals(axes, IntStream.range(0, rank - 1).toArray())) {
                Dim rows = new Shape(x.shape().dims().subList(0, rank - 1)).product();
                Value sums = gemm(ones(rows), reshape(x, Shape.of(rows, x.dim(-1))), true, false);
                return reshape(sums, reduced(x.shape(), keepAxes, axes));
            }
        }
        return reduce("ReduceSum", x, keepAxes, axes);
    }

    private Value ones(Dim count) {
        return expand(graph.scalar(1f), Shape.of(count, Dim.ONE));
    }

    public Value reduceMax(Value x, boolean keepAxes, int... axes) {
        return reduce("ReduceMax", x, keepAxes, axes);
    }

    public Value reduceMean(Value x, boolean keepAxes, int... axes) {
        return graph.onDevice() && axes.length == 1 && x.dim(axes[0]).isConstant()
                ? mul(reduceSum(x, keepAxes, axes), 1f / x.dim(axes[0]).length())
                : reduce("ReduceMean", x, keepAxes, axes);
    }

    private Value reduce(String operator, Value x, boolean keepAxes, int... axes) {
        return append(
                operator,
                List.of(x, graph.constant(Arrays.stream(axes).asLongStream().toArray())),
                x.type(),
                reduced(x.shape(), keepAxes, axes),
                Attribute.of("keepdims", keepAxes ? 1 : 0));
    }

    private static Shape reduced(Shape shape, boolean keepAxes, int... axes) {
        boolean[] gone = new boolean[shape.rank()];
        Arrays.stream(axes).forEach(axis -> gone[shape.axis(axis)] = true);
        return new Shape(IntStream.range(0, gone.length)
                .filter(axis -> keepAxes || !gone[axis])
                .mapToObj(axis -> gone[axis] ? Dim.ONE : shape.dims().get(axis))
                .toList());
    }

    public Value softmax(Value x, int axis) {
        return append("Softmax", List.of(x), x.type(), x.shape(), Attribute.of("axis", axis));
    }

    public Value logSoftmax(Value x, int axis) {
        return append("LogSoftmax", List.of(x), x.type(), x.shape(), Attribute.of("axis", axis));
    }

    /** Running sum along an axis, the element itself included unless {@code exclusive}. */
    public Value cumSum(Value x, int axis, boolean exclusive) {
        return append(
                "CumSum",
                List.of(x, graph.scalar((long) axis)),
                x.type(),
                x.shape(),
                Attribute.of("exclusive", exclusive ? 1 : 0));
    }

    /** The last axis sorted downwards: values and where they came from. */
    public List<Value> sortDescending(Value x) {
        return top(x, x.dim(-1).length());
    }

    /** The k largest of the last axis, downwards: values and where they came from. */
    public List<Value> top(Value x, long k) {
        Shape shape = x.shape().with(-1, Dim.of(k));
        return graph.node(
                        "",
                        "TopK",
                        List.of(x, graph.constant(k)),
                        List.of(graph.fresh("TopK", x.type(), shape), graph.fresh("TopK", ElementType.INT64, shape)))
                .outputs();
    }

    /** The elements for which a condition of the same shape holds, flattened: [count]. */
    public Value compress(Value x, Value condition, Dim count) {
        Shape flat = Shape.of(x.shape().product());
        return append("Compress", List.of(reshape(x, flat), reshape(condition, flat)), x.type(), Shape.of(count));
    }

    // ---- decoder parts

    /** {@code x / sqrt(mean(x^2) + eps) * scale} over the last axis; the second result is the factor on x, [..., 1]. */
    public List<Value> rmsNorm(Value x, Value scale, float epsilon) {
        return graph.node(
                        "",
                        "SimplifiedLayerNormalization",
                        List.of(x, scale),
                        List.of(
                                graph.fresh("RmsNorm", x.type(), x.shape()),
                                graph.fresh("RmsScale", x.type(), x.shape().with(-1, Dim.ONE))),
                        Attribute.of("epsilon", epsilon),
                        Attribute.of("axis", -1),
                        Attribute.of("stash_type", 1))
                .outputs();
    }

    /**
     * Rotary positions on {@code [batch, length, heads*headSize]}, first half of a head paired with its second half.
     *
     * @param positions int64 [batch, length], rows of the tables
     * @param cos       [positions, headSize/2]
     * @param sin       as {@code cos}
     */
    public Value rotary(Value x, Value positions, Value cos, Value sin) {
        long headSize = 2 * cos.dim(1).length();
        if (x.shape().rank() != 3 || x.dim(-1).length() % headSize != 0) {
            throw new IllegalArgumentException(
                    "rotary positions turn [batch, length, heads*" + headSize + "], not " + x);
        }
        return result(graph.node(
                GraphBuilder.MICROSOFT,
                "RotaryEmbedding",
                List.of(x, positions, cos, sin),
                List.of(graph.fresh("Rotary", x.type(), x.shape())),
                Attribute.of("interleaved", 0)));
    }

    // ---- plumbing

    private Value append(
            String operator, List<Value> operands, ElementType type, Shape shape, AttributeProto... attributes) {
        return result(graph.node("", operator, operands, List.of(graph.fresh(operator, type, shape)), attributes));
    }

    private static Value result(Node node) {
        return node.output();
    }
}
