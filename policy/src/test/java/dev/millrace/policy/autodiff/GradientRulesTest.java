package dev.millrace.policy.autodiff;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.policy.autodiff.ReverseMode.GradientRules;
import dev.millrace.policy.autodiff.RuleCase.Expression;
import dev.millrace.policy.autodiff.RuleCase.Input;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

class GradientRulesTest {
    private static final Dim B = Dim.symbol("B");
    private static final Dim L = Dim.symbol("L");
    static final List<RuleCase> CASES = cases();

    @ParameterizedTest(name = "{0}")
    @FieldSource("CASES")
    void shouldAgreeWithFiniteDifferences(RuleCase rule) {
        assertThat(rule.worstError()).isLessThan(2e-4);
    }

    @Test
    void shouldHaveACaseForEveryRule() {
        assertThat(CASES.stream().map(RuleCase::operator).collect(Collectors.toSet()))
                .containsExactlyInAnyOrderElementsOf(GradientRules.operators());
    }

    private static List<RuleCase> cases() {
        List<RuleCase> cases = new ArrayList<>();
        elementwise(cases);
        products(cases);
        layout(cases);
        indexing(cases);
        reductions(cases);
        decoderParts(cases);
        return cases;
    }

    private static void elementwise(List<RuleCase> cases) {
        cases.add(unary("Identity", -1, 1, Operators::identity));
        cases.add(unary("Cast", -1, 1, (o, x) -> o.cast(x, ElementType.FLOAT)));
        cases.add(unary("Neg", -1, 1, Operators::neg));
        cases.add(unary("Exp", -1, 1, Operators::exp));
        cases.add(unary("Log", 0.6, 2, Operators::log));
        cases.add(unary("Sqrt", 0.6, 2, Operators::sqrt));
        cases.add(unary("Sigmoid", -2, 2, Operators::sigmoid));
        for (String operator : List.of("Add", "Sub", "Mul", "Div")) {
            BinaryOperator write = switch (operator) {
                case "Add" -> Operators::add;
                case "Sub" -> Operators::sub;
                case "Mul" -> Operators::mul;
                default -> Operators::div;
            };
            cases.add(binary(
                    operator,
                    "equal shapes",
                    Shape.of(B, Dim.of(3)),
                    Shape.of(B, Dim.of(3)),
                    write,
                    dims(2, 3),
                    dims(2, 3)));
            cases.add(binary(
                    operator,
                    "a row over rows",
                    Shape.of(B, L, Dim.of(3)),
                    Shape.of(3),
                    write,
                    dims(2, 2, 3),
                    dims(3)));
            cases.add(binary(
                    operator,
                    "a row stretched over two axes",
                    Shape.of(4),
                    Shape.of(B, L, Dim.of(4)),
                    write,
                    dims(4),
                    dims(2, 3, 4)));
            cases.add(binary(
                    operator,
                    "both stretched",
                    Shape.of(Dim.of(3), Dim.ONE),
                    Shape.of(Dim.ONE, L),
                    write,
                    dims(3, 1),
                    dims(1, 2)));
            cases.add(binary(operator, "a scalar", Shape.of(B, Dim.of(2)), Shape.SCALAR, write, dims(3, 2), dims()));
        }
        cases.add(new RuleCase(
                "Where",
                "branches of different shapes",
                List.of(
                        Input.indices("which", dims(3, 2), 0, 1, 1, 0, 0, 1),
                        input("a", Shape.of(3, 2), 3, 2),
                        input("b", Shape.of(1, 2), 1, 2)),
                (o, v) ->
                        o.where(o.cast(v.get("which"), ElementType.BOOL), o.mul(v.get("a"), v.get("a")), v.get("b"))));
    }

    private static void products(List<RuleCase> cases) {
        cases.add(binary(
                "MatMul",
                "batches",
                Shape.of(B, Dim.of(2), Dim.of(3)),
                Shape.of(B, Dim.of(3), Dim.of(4)),
                Operators::matMul,
                dims(2, 2, 3),
                dims(2, 3, 4)));
        cases.add(binary(
                "MatMul",
                "one matrix for all",
                Shape.of(B, L, Dim.of(3)),
                Shape.of(3, 4),
                Operators::matMul,
                dims(2, 2, 3),
                dims(3, 4)));
        for (int flags = 0; flags < 4; flags++) {
            boolean ta = (flags & 1) == 1;
            boolean tb = (flags & 2) == 2;
            String name = "transA=" + ta + " transB=" + tb;
            long[] a = ta ? dims(3, 5) : dims(5, 3);
            long[] b = tb ? dims(4, 3) : dims(3, 4);
            cases.add(binary(
                    "FusedMatMul",
                    name,
                    Shape.of(Dim.symbol("N"), Dim.of(a[0]), Dim.of(a[1])),
                    Shape.of(Dim.symbol("N"), Dim.of(b[0]), Dim.of(b[1])),
                    (o, x, y) -> o.fusedMatMul(x, y, ta, tb, 0.7f),
                    dims(2, a[0], a[1]),
                    dims(2, b[0], b[1])));
            cases.add(binary("Gemm", name, Shape.of(a), Shape.of(b), (o, x, y) -> o.gemm(x, y, ta, tb), a, b));
            cases.add(new RuleCase(
                    "Gemm",
                    "bias " + name,
                    List.of(input("a", Shape.of(a), a), input("b", Shape.of(b), b), input("c", Shape.of(4), 4)),
                    (o, v) -> o.gemm(v.get("a"), v.get("b"), v.get("c"), ta, tb)));
        }
    }

    private static void layout(List<RuleCase> cases) {
        Shape x = Shape.of(B, L, Dim.of(6));
        cases.add(curved(
                "Reshape",
                "heads split off",
                x,
                o -> v -> o.reshape(v, Shape.of(B, L, Dim.of(2), Dim.of(3))),
                2,
                3,
                6));
        cases.add(curved(
                "Reshape", "rows joined", x, o -> v -> o.reshape(v, Shape.of(B.times(L), Dim.of(6))), 2, 3, 6));
        cases.add(curved("Transpose", "a cycle of axes", x, o -> v -> o.transpose(v, 2, 0, 1), 2, 3, 6));
        cases.add(curved(
                "Squeeze", "a middle axis", Shape.of(B, Dim.ONE, Dim.of(2)), o -> v -> o.squeeze(v, 1), 3, 1, 2));
        cases.add(curved("Unsqueeze", "a last axis", Shape.of(B, Dim.of(2)), o -> v -> o.unsqueeze(v, -1), 3, 2));
        cases.add(curved(
                "Expand",
                "a leading and a middle axis",
                Shape.of(Dim.of(2), Dim.ONE, Dim.of(2)),
                o -> v -> o.expand(v, Shape.of(3, 2, 4, 2)),
                2,
                1,
                2));
        cases.add(
                curved("Slice", "the middle of an axis", Shape.of(B, Dim.of(6)), o -> v -> o.slice(v, 1, 1, 4), 2, 6));
        cases.add(new RuleCase(
                "Slice",
                "all rows but the last",
                List.of(input("a", Shape.of(4, 3), 4, 3)),
                (o, v) -> square(o, o.dropRows(v.get("a"), 1, Dim.of(3)))));
        cases.add(new RuleCase(
                "Pad", "rows that are dropped again", List.of(input("a", Shape.of(B, Dim.of(3)), 2, 3)), (o, v) -> {
                    Value padded = o.padRows(v.get("a"), 2, Dim.symbol("P"));
                    return o.mul(o.dropRows(square(o, padded), 2, B), v.get("a"));
                }));
        cases.add(new RuleCase(
                "Concat",
                "three parts",
                List.of(input("a", Shape.of(B, Dim.of(2)), 3, 2), input("b", Shape.of(B, Dim.of(1)), 3, 1)),
                (o, v) -> square(o, o.concat(1, v.get("a"), v.get("b"), v.get("a")))));
        cases.add(new RuleCase(
                "Split", "both parts used", List.of(input("a", Shape.of(B, Dim.of(5)), 2, 5)), (o, v) -> {
                    List<Value> parts = o.split(v.get("a"), 1, 2, 3);
                    return o.mul(square(o, o.slice(parts.get(1), 1, 0, 2)), parts.get(0));
                }));
        cases.add(new RuleCase(
                "Split",
                "one part used",
                List.of(input("a", Shape.of(B, Dim.of(5)), 2, 5)),
                (o, v) -> square(o, o.split(v.get("a"), 1, 2, 3).get(1))));
    }

    private static void indexing(List<RuleCase> cases) {
        cases.add(new RuleCase(
                "Gather",
                "rows more than once",
                List.of(input("a", Shape.of(4, 3), 4, 3), Input.indices("i", dims(2, 3), 3, 1, 1, 0, 3, 3)),
                (o, v) -> square(o, o.gather(v.get("a"), v.get("i")))));
        cases.add(new RuleCase(
                "ScatterND",
                "rows added to some",
                List.of(
                        input("a", Shape.of(4, 3), 4, 3),
                        input("u", Shape.of(2, 3), 2, 3),
                        Input.indices("i", dims(2, 1), 3, 1)),
                (o, v) -> square(o, o.scatterNdAdd(v.get("a"), v.get("i"), v.get("u")))));
        cases.add(new RuleCase(
                "GatherElements",
                "last axis",
                List.of(input("a", Shape.of(3, 4), 3, 4), Input.indices("i", dims(3, 2), 3, 1, 1, 1, 0, 2)),
                (o, v) -> square(o, o.gatherElements(v.get("a"), v.get("i"), 1))));
        cases.add(new RuleCase(
                "GatherElements",
                "first axis",
                List.of(input("a", Shape.of(3, 2), 3, 2), Input.indices("i", dims(4, 2), 2, 1, 1, 1, 0, 2, 2, 2)),
                (o, v) -> square(o, o.gatherElements(v.get("a"), v.get("i"), 0))));
    }

    private static void reductions(List<RuleCase> cases) {
        Shape x = Shape.of(B, Dim.of(2), Dim.of(3));
        cases.add(curved("ReduceSum", "an axis kept", x, o -> v -> o.reduceSum(square(o, v), true, -1), 4, 2, 3));
        cases.add(curved(
                "ReduceSum", "two axes dropped", x, o -> v -> o.reduceSum(square(o, v), false, 0, 2), 4, 2, 3));
        cases.add(curved("Softmax", "last axis", x, o -> v -> o.softmax(v, -1), 2, 2, 3));
        cases.add(curved("Softmax", "middle axis", x, o -> v -> o.softmax(v, 1), 2, 2, 3));
        cases.add(curved("LogSoftmax", "last axis", x, o -> v -> o.logSoftmax(v, -1), 2, 2, 3));
    }

    private static void decoderParts(List<RuleCase> cases) {
        cases.add(new RuleCase(
                "SimplifiedLayerNormalization",
                "rows",
                List.of(input("x", Shape.of(B, Dim.of(5)), 3, 5), input("scale", Shape.of(5), 5)),
                (o, v) -> square(o, o.rmsNorm(v.get("x"), v.get("scale"), 0.1f).get(0))));
        cases.add(new RuleCase(
                "SimplifiedLayerNormalization",
                "three axes",
                List.of(input("x", Shape.of(B, L, Dim.of(4)), 2, 2, 4), input("scale", Shape.of(4), 4)),
                (o, v) -> o.rmsNorm(v.get("x"), v.get("scale"), 1e-3f).get(0)));
        cases.add(new RuleCase(
                "RotaryEmbedding",
                "two heads",
                List.of(
                        input("x", Shape.of(B, L, Dim.of(8)), 2, 3, 8),
                        Input.indices("at", dims(2, 3), 0, 1, 2, 2, 1, 0),
                        Input.indices("turns", dims(3, 2), 0, 1, 2, 1, 2, 0)),
                (o, v) -> {
                    Value turns = o.cast(v.get("turns"), ElementType.FLOAT);
                    return square(o, o.rotary(v.get("x"), v.get("at"), o.mul(turns, 0.8f), o.mul(turns, 0.6f)));
                }));
    }

    @FunctionalInterface
    private interface BinaryOperator {
        Value write(Operators ops, Value a, Value b);
    }

    @FunctionalInterface
    private interface UnaryOperator {
        Value write(Operators ops, Value x);
    }

    @FunctionalInterface
    private interface Curried {
        Function<Value, Value> with(Operators ops);
    }

    private static RuleCase unary(String operator, double low, double high, UnaryOperator write) {
        return new RuleCase(
                operator,
                "matrix",
                List.of(Input.random("x", Shape.of(B, Dim.of(3)), low, high, 4, 3)),
                (o, v) -> write.write(o, v.get("x")));
    }

    /** Operands between 0.6 and 1.4, where all of the five binary operators are smooth. */
    private static RuleCase binary(
            String operator, String name, Shape a, Shape b, BinaryOperator write, long[] aDims, long[] bDims) {
        return new RuleCase(
                operator,
                name,
                List.of(Input.random("a", a, 0.6, 1.4, aDims), Input.random("b", b, 0.6, 1.4, bDims)),
                (o, v) -> write.write(o, v.get("a"), v.get("b")));
    }

    /** The operator's result squared, so that its gradient depends on where the values went. */
    private static RuleCase curved(String operator, String name, Shape shape, Curried write, long... dims) {
        Expression expression = (o, v) -> square(o, write.with(o).apply(v.get("x")));
        return new RuleCase(operator, name, List.of(input("x", shape, dims)), expression);
    }

    private static Input input(String name, Shape shape, long... dims) {
        return Input.random(name, shape, -1, 1, dims);
    }

    private static Value square(Operators ops, Value x) {
        return ops.mul(x, x);
    }

    private static long[] dims(long... dims) {
        return dims;
    }
}
