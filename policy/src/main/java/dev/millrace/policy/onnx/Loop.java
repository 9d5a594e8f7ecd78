package dev.millrace.policy.onnx;

import java.util.ArrayList;
import java.util.List;

/**
 * A loop in a graph: a body that runs a number of times, passes states on and produces one result per iteration.
 *
 * @param states  final values of the states, in the order they were given
 * @param results one per result of the body, with the iterations stacked along a new axis 0
 */
public record Loop(List<Value> states, List<Value> results) {

    /**
     * A state that is passed from iteration to iteration.
     *
     * @param initial value before the first
     * @param inside  its shape within an iteration, which may differ from the initial one
     * @param after   its shape after the last
     */
    public record State(Value initial, Shape inside, Shape after) {
        /** A state that keeps its shape. */
        public static State of(Value initial) {
            return new State(initial, initial.shape(), initial.shape());
        }
    }

    /** What one iteration produces: the states for the next, and its results. */
    public record Iteration(List<Value> states, List<Value> results) {}

    /** Writes the body; may use any value of the graphs around it. */
    @FunctionalInterface
    public interface Body {
        /** @param number int64 scalar, from 0 */
        Iteration write(GraphBuilder inside, Value number, List<Value> states);
    }

    /**
     * Appends a loop.
     *
     * @param trips      int64 scalar
     * @param iterations symbol of the stacked results' length
     */
    public static Loop append(GraphBuilder graph, Value trips, Dim iterations, List<State> states, Body body) {
        GraphBuilder inside = graph.body("body");
        Value number = inside.input(graph.fresh("iteration", ElementType.INT64, Shape.SCALAR));
        Value condition = inside.input(graph.fresh("go_on", ElementType.BOOL, Shape.SCALAR));
        List<Value> entering = states.stream()
                .map(state -> inside.input(graph.fresh("state", state.initial().type(), state.inside())))
                .toList();
        Iteration iteration = body.write(inside, number, entering);
        if (iteration.states().size() != states.size()) {
            throw new IllegalArgumentException(
                    "the body hands on " + iteration.states().size() + " states, not " + states.size());
        }
        inside.output(condition);
        iteration.states().forEach(inside::output);
        iteration.results().forEach(inside::output);

        List<Value> operands = new ArrayList<>(List.of(trips, graph.scalar(true)));
        states.forEach(state -> operands.add(state.initial()));
        List<Value> outputs = new ArrayList<>();
        states.forEach(state -> outputs.add(graph.fresh("Loop", state.initial().type(), state.after())));
        for (Value result : iteration.results()) {
            List<Dim> dims = new ArrayList<>(List.of(iterations));
            dims.addAll(result.shape().dims());
            outputs.add(graph.fresh("Loop", result.type(), new Shape(dims)));
        }
        graph.node("", "Loop", operands, outputs, Attribute.of("body", inside.graph()));
        return new Loop(outputs.subList(0, states.size()), outputs.subList(states.size(), outputs.size()));
    }
}
