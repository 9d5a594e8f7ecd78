package dev.millrace.policy.jinja;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The parts of a program. */
sealed interface Node {
    /** A statement: renders text or changes names. */
    sealed interface Statement extends Node {}

    sealed interface Expression extends Node {}

    record Data(String text) implements Statement {}

    record Output(Expression value, int line) implements Statement {}

    record If(List<Expression> conditions, List<List<Statement>> bodies, List<Statement> otherwise)
            implements Statement {}

    /** @param filter over the items; null for none */
    record For(
            Target target,
            Expression items,
            @Nullable Expression filter,
            List<Statement> body,
            List<Statement> otherwise,
            boolean isRecursive,
            int line)
            implements Statement {}

    record Set(Target target, Expression value) implements Statement {}

    /** @param filters applied to the text of the body, outermost last */
    record SetBlock(Target target, List<Filter> filters, List<Statement> body) implements Statement {}

    record FilterBlock(List<Filter> filters, List<Statement> body) implements Statement {}

    record With(List<Target> targets, List<Expression> values, List<Statement> body) implements Statement {}

    /** A body with names of its own, such as {@code generation}. */
    record Scope(List<Statement> body) implements Statement {}

    record Macro(String name, Parameters parameters, List<Statement> body, java.util.Set<String> mentioned)
            implements Statement {}

    /** @param caller macro that the called macro may call */
    record CallBlock(Macro caller, Call call) implements Statement {}

    record Break() implements Statement {}

    record Continue() implements Statement {}

    record Parameters(List<String> names, List<Expression> defaults) {}

    /** Target of an assignment: a name, an attribute of a namespace, or several of these. */
    sealed interface Target {
        record Name(String name) implements Target {}

        record Attribute(String namespace, String name) implements Target {}

        record Several(List<Target> targets) implements Target {}
    }

    record Constant(@Nullable Object value) implements Expression {}

    record Name(String name, int line) implements Expression {}

    record ListOf(List<Expression> items) implements Expression {}

    record TupleOf(List<Expression> items) implements Expression {}

    record DictOf(List<Expression> keys, List<Expression> values) implements Expression {}

    record Attribute(Expression of, String name, int line) implements Expression {}

    record Item(Expression of, Expression key, int line) implements Expression {}

    record Slice(
            Expression of,
            @Nullable Expression from,
            @Nullable Expression to,
            @Nullable Expression step,
            int line) implements Expression {}

    /** @param spread a list of further arguments; null for none */
    record Arguments(
            List<Expression> values,
            Map<String, Expression> named,
            @Nullable Expression spread) {}

    record Call(Expression called, Arguments arguments, int line) implements Expression {}

    /** @param of null in a block, whose text is filtered */
    record Filter(@Nullable Expression of, String name, Arguments arguments, int line) implements Expression {}

    record Test(Expression of, String name, Arguments arguments, boolean isNegated, int line) implements Expression {}

    record Unary(String operator, Expression of, int line) implements Expression {}

    record Binary(String operator, Expression left, Expression right, int line) implements Expression {}

    /** {@code a < b < c}: all must hold; each operand is evaluated once. */
    record Compare(Expression first, List<String> operators, List<Expression> others, int line) implements Expression {}

    /** @param otherwise null where the condition has no else */
    record Conditional(
            Expression condition, Expression then, @Nullable Expression otherwise) implements Expression {}
}
