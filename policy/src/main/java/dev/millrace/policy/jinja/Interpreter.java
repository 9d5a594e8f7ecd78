package dev.millrace.policy.jinja;

import dev.millrace.policy.jinja.Node.Arguments;
import dev.millrace.policy.jinja.Node.Expression;
import dev.millrace.policy.jinja.Node.Parameters;
import dev.millrace.policy.jinja.Node.Statement;
import dev.millrace.policy.jinja.Node.Target;
import dev.millrace.policy.jinja.Values.Callable;
import dev.millrace.policy.jinja.Values.Namespace;
import dev.millrace.policy.jinja.Values.Undefined;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Renders one program once. Names that a loop, a macro or a block with a body sets are its own; those of {@code if} are not. */
final class Interpreter {
    /** Jinja features that are not supported; a template that tests for them would render differently. */
    private static final Set<String> NOT_HERE = Set.of("self", "cycler", "joiner", "lipsum");

    private static final int DEEPEST_CALL = 50;

    private final boolean strict;
    private final Builtins builtins = new Builtins(this);
    private StringBuilder out = new StringBuilder();
    private int calls;

    /** @param strict whether missing dictionary keys are refused */
    Interpreter(boolean strict) {
        this.strict = strict;
    }

    /** A scope of names with access to the enclosing scope. */
    private static final class Scope {
        private final @Nullable Scope outer;
        private final Map<String, @Nullable Object> names = new HashMap<>();

        Scope(@Nullable Scope outer) {
            this.outer = outer;
        }

        @Nullable
        Scope holding(String name) {
            Scope scope = this;
            while (scope != null && !scope.names.containsKey(name)) {
                scope = scope.outer;
            }
            return scope;
        }
    }

    private enum Flow {
        ON,
        BREAK,
        CONTINUE
    }

    String render(List<Statement> program, Map<String, @Nullable Object> globals) {
        Values.beginCounting();
        run(program, outermost(globals));
        return out.toString();
    }

    @Nullable
    Object value(Expression expression, Map<String, @Nullable Object> globals) {
        Values.beginCounting();
        return value(expression, outermost(globals));
    }

    private Scope outermost(Map<String, @Nullable Object> globals) {
        Scope functions = new Scope(null);
        functions.names.putAll(builtins.functions());
        Scope given = new Scope(functions);
        given.names.putAll(globals);
        return new Scope(given);
    }

    private void write(String text) {
        if (out.length() + text.length() > Values.MOST_CHARACTERS) {
            throw Values.tooLong();
        }
        out.append(text);
    }

    private Flow run(List<Statement> statements, Scope scope) {
        for (Statement statement : statements) {
            Flow flow = run(statement, scope);
            if (flow != Flow.ON) {
                return flow;
            }
        }
        return Flow.ON;
    }

    private Flow run(Statement statement, Scope scope) {
        Values.spend(1);
        if (statement instanceof Node.Data data) {
            write(data.text());
        } else if (statement instanceof Node.Output output) {
            write(located(() -> Values.text(value(output.value(), scope)), output.line()));
        } else if (statement instanceof Node.If branches) {
            for (int i = 0; i < branches.conditions().size(); i++) {
                if (Values.truth(value(branches.conditions().get(i), scope))) {
                    return run(branches.bodies().get(i), scope);
                }
            }
            return run(branches.otherwise(), scope);
        } else if (statement instanceof Node.For loop) {
            loop(loop, value(loop.items(), scope), scope, 0);
        } else if (statement instanceof Node.Set set) {
            assign(set.target(), value(set.value(), scope), scope);
        } else if (statement instanceof Node.SetBlock set) {
            assign(set.target(), filtered(set.filters(), captured(set.body(), new Scope(scope)), scope), scope);
        } else if (statement instanceof Node.FilterBlock block) {
            write(Values.text(filtered(block.filters(), captured(block.body(), new Scope(scope)), scope)));
        } else if (statement instanceof Node.With with) {
            Scope inner = new Scope(scope);
            for (int i = 0; i < with.targets().size(); i++) {
                assign(with.targets().get(i), value(with.values().get(i), scope), inner);
            }
            return run(with.body(), inner);
        } else if (statement instanceof Node.Scope body) {
            return run(body.body(), new Scope(scope));
        } else if (statement instanceof Node.Macro macro) {
            scope.names.put(macro.name(), macro(macro, scope));
        } else if (statement instanceof Node.CallBlock block) {
            Map<String, @Nullable Object> named = named(block.call().arguments(), scope);
            named.put("caller", macro(block.caller(), scope));
            write(Values.text(called(block.call(), positional(block.call().arguments(), scope), named, scope)));
        } else if (statement instanceof Node.Break) {
            return Flow.BREAK;
        } else if (statement instanceof Node.Continue) {
            return Flow.CONTINUE;
        }
        return Flow.ON;
    }

    private interface Work<T> {
        T run();
    }

    private interface ValueWork {
        @Nullable
        Object run();
    }

    /** Adds this line to an error that names none. */
    private static <T> T located(Work<T> work, int line) {
        try {
            return work.run();
        } catch (TemplateException e) {
            throw at(line, e);
        }
    }

    private static @Nullable Object locatedValue(ValueWork work, int line) {
        try {
            return work.run();
        } catch (TemplateException e) {
            throw at(line, e);
        }
    }

    private static TemplateException at(int line, TemplateException e) {
        String sentence = String.valueOf(e.getMessage());
        boolean isLocated = sentence.endsWith(")") && sentence.contains(" (line ");
        return e instanceof TemplateException.RaisedException || isLocated ? e : new TemplateException(sentence, line);
    }

    private String captured(List<Statement> body, Scope scope) {
        StringBuilder before = out;
        out = new StringBuilder();
        try {
            run(body, scope);
            return out.toString();
        } finally {
            out = before;
        }
    }

    private @Nullable Object filtered(List<Node.Filter> filters, String text, Scope scope) {
        Object value = text;
        for (Node.Filter filter : filters) {
            value = filtered(filter, value, scope);
        }
        return value;
    }

    private void assign(Target target, @Nullable Object value, Scope scope) {
        if (target instanceof Target.Name name) {
            scope.names.put(name.name(), value);
        } else if (target instanceof Target.Attribute attribute) {
            Scope holding = scope.holding(attribute.namespace());
            if (holding == null || !(holding.names.get(attribute.namespace()) instanceof Namespace namespace)) {
                throw new TemplateException(
                        "it sets an attribute of " + attribute.namespace() + ", which is not a namespace");
            }
            namespace.attributes().put(attribute.name(), value);
        } else if (target instanceof Target.Several several) {
            List<@Nullable Object> values = Values.items(value);
            if (values.size() != several.targets().size()) {
                throw new TemplateException("it takes " + values.size() + " values apart into "
                        + several.targets().size() + " names");
            }
            for (int i = 0; i < values.size(); i++) {
                assign(several.targets().get(i), values.get(i), scope);
            }
        }
    }

    private void loop(Node.For loop, @Nullable Object over, Scope scope, int depth) {
        List<@Nullable Object> items = located(() -> Values.items(over), loop.line());
        if (loop.filter() != null) {
            List<@Nullable Object> kept = new ArrayList<>();
            for (Object item : items) {
                Scope inner = new Scope(scope);
                assign(loop.target(), item, inner);
                if (Values.truth(value(loop.filter(), inner))) {
                    kept.add(item);
                }
            }
            items = kept;
        }
        if (items.isEmpty()) {
            run(loop.otherwise(), new Scope(scope));
            return;
        }
        LoopState state = new LoopState(items, depth, loop, scope);
        for (int i = 0; i < items.size(); i++) {
            Values.spend(1);
            state.index = i;
            Scope inner = new Scope(scope);
            inner.names.put("loop", state);
            assign(loop.target(), items.get(i), inner);
            if (run(loop.body(), inner) == Flow.BREAK) {
                return;
            }
        }
    }

    /** {@code loop} of a program. */
    private final class LoopState implements Callable {
        private final List<@Nullable Object> items;
        private final int depth;
        private final Node.For loop;
        private final Scope scope;
        private int index;
        private @Nullable List<@Nullable Object> changedTo;

        LoopState(List<@Nullable Object> items, int depth, Node.For loop, Scope scope) {
            this.items = items;
            this.depth = depth;
            this.loop = loop;
            this.scope = scope;
        }

        @Nullable
        Object attribute(String name) {
            int size = items.size();
            return switch (name) {
                case "index" -> index + 1L;
                case "index0" -> (long) index;
                case "revindex" -> (long) (size - index);
                case "revindex0" -> (long) (size - index - 1);
                case "first" -> index == 0;
                case "last" -> index == size - 1;
                case "length" -> (long) size;
                case "depth" -> depth + 1L;
                case "depth0" -> (long) depth;
                case "previtem" -> index == 0 ? new Undefined("there is no previous item") : items.get(index - 1);
                case "nextitem" -> index == size - 1 ? new Undefined("there is no next item") : items.get(index + 1);
                case "cycle" ->
                    (Callable) (arguments, named) -> {
                        if (arguments.isEmpty()) {
                            throw new TemplateException("cycle needs something to go through");
                        }
                        return arguments.get(index % arguments.size());
                    };
                case "changed" ->
                    (Callable) (arguments, named) -> {
                        boolean isChanged = changedTo == null || !Values.equal(changedTo, arguments);
                        changedTo = arguments;
                        return isChanged;
                    };
                default -> new Undefined("loop has no " + name);
            };
        }

        @Override
        public @Nullable Object call(List<@Nullable Object> arguments, Map<String, @Nullable Object> named) {
            if (!loop.isRecursive() || arguments.size() != 1) {
                throw new TemplateException("a loop that is called must be recursive, with one argument");
            }
            return nested(() -> {
                StringBuilder before = out;
                out = new StringBuilder();
                try {
                    loop(loop, arguments.get(0), scope, depth + 1);
                    return out.toString();
                } finally {
                    out = before;
                }
            });
        }
    }

    private <T> T nested(Work<T> work) {
        if (++calls > DEEPEST_CALL) {
            throw new TemplateException("its macros call each other more than " + DEEPEST_CALL + " deep");
        }
        try {
            return work.run();
        } finally {
            calls--;
        }
    }

    private Callable macro(Node.Macro macro, Scope defined) {
        Parameters parameters = macro.parameters();
        return (arguments, named) -> nested(() -> {
            Scope scope = new Scope(defined);
            int count = parameters.names().size();
            int required = count - parameters.defaults().size();
            Map<String, @Nullable Object> left = new LinkedHashMap<>(named);
            scope.names.put(
                    "caller", left.containsKey("caller") ? left.remove("caller") : new Undefined("there is no caller"));
            if (left.isEmpty() && arguments.size() > count) {
                scope.names.put("varargs", new Values.Tuple(arguments.subList(count, arguments.size())));
            }
            for (int i = 0; i < count; i++) {
                String parameter = parameters.names().get(i);
                if (i < arguments.size()) {
                    scope.names.put(parameter, arguments.get(i));
                } else if (left.containsKey(parameter)) {
                    scope.names.put(parameter, left.remove(parameter));
                } else if (i >= required) {
                    scope.names.put(parameter, value(parameters.defaults().get(i - required), scope));
                } else {
                    scope.names.put(parameter, new Undefined("parameter '" + parameter + "' was not provided"));
                }
            }
            if (!left.isEmpty() && !macro.mentioned().contains("kwargs")) {
                throw new TemplateException("macro " + macro.name() + " takes no argument "
                        + left.keySet().iterator().next());
            }
            if (arguments.size() > count && !macro.mentioned().contains("varargs")) {
                throw new TemplateException("macro " + macro.name() + " takes not more than " + count + " arguments");
            }
            if (!left.isEmpty()) {
                scope.names.put("kwargs", new LinkedHashMap<Object, Object>(left));
            }
            return captured(macro.body(), scope);
        });
    }

    @Nullable
    Object value(Expression expression, Scope scope) {
        Values.spend(1);
        if (expression instanceof Node.Constant constant) {
            return constant.value();
        }
        if (expression instanceof Node.Name name) {
            Scope holding = scope.holding(name.name());
            if (holding == null && NOT_HERE.contains(name.name())) {
                throw new TemplateException("Jinja's '" + name.name() + "' is not supported");
            }
            return holding == null
                    ? new Undefined("'" + name.name() + "' is undefined")
                    : holding.names.get(name.name());
        }
        if (expression instanceof Node.ListOf list) {
            return values(list.items(), scope);
        }
        if (expression instanceof Node.TupleOf tuple) {
            return new Values.Tuple(values(tuple.items(), scope));
        }
        if (expression instanceof Node.DictOf dictionary) {
            Map<Object, @Nullable Object> made = new LinkedHashMap<>();
            for (int i = 0; i < dictionary.keys().size(); i++) {
                made.put(
                        Values.key(value(dictionary.keys().get(i), scope)),
                        value(dictionary.values().get(i), scope));
            }
            return made;
        }
        if (expression instanceof Node.Attribute attribute) {
            return locatedValue(() -> attribute(value(attribute.of(), scope), attribute.name()), attribute.line());
        }
        if (expression instanceof Node.Item item) {
            return locatedValue(() -> item(value(item.of(), scope), value(item.key(), scope)), item.line());
        }
        if (expression instanceof Node.Slice slice) {
            return locatedValue(
                    () -> Values.sliced(
                            value(slice.of(), scope),
                            slice.from() == null ? null : value(slice.from(), scope),
                            slice.to() == null ? null : value(slice.to(), scope),
                            slice.step() == null ? null : value(slice.step(), scope)),
                    slice.line());
        }
        if (expression instanceof Node.Call call) {
            return locatedValue(
                    () -> called(call, positional(call.arguments(), scope), named(call.arguments(), scope), scope),
                    call.line());
        }
        if (expression instanceof Node.Filter filter) {
            Object of = filter.of() == null ? null : value(filter.of(), scope);
            return locatedValue(() -> filtered(filter, of, scope), filter.line());
        }
        if (expression instanceof Node.Test test) {
            Object of = value(test.of(), scope);
            return locatedValue(
                    () -> builtins.test(test.name(), of, positional(test.arguments(), scope)) != test.isNegated(),
                    test.line());
        }
        if (expression instanceof Node.Unary unary) {
            Object of = value(unary.of(), scope);
            return locatedValue(
                    () -> switch (unary.operator()) {
                        case "not" -> !Values.truth(of);
                        case "-" ->
                            Values.binary("-", 0L, of) instanceof Double
                                    ? (Object) (-Values.number(of).doubleValue())
                                    : Values.binary("-", 0L, of);
                        default -> Values.number(of);
                    },
                    unary.line());
        }
        if (expression instanceof Node.Binary binary) {
            return binary(binary, scope);
        }
        if (expression instanceof Node.Compare compare) {
            return locatedValue(() -> compared(compare, scope), compare.line());
        }
        if (expression instanceof Node.Conditional conditional) {
            if (Values.truth(value(conditional.condition(), scope))) {
                return value(conditional.then(), scope);
            }
            return conditional.otherwise() == null
                    ? new Undefined("the inline if-expression evaluated to false and no else section was defined")
                    : value(conditional.otherwise(), scope);
        }
        throw new IllegalStateException(String.valueOf(expression));
    }

    private List<@Nullable Object> values(List<Expression> expressions, Scope scope) {
        List<@Nullable Object> values = new ArrayList<>(expressions.size());
        expressions.forEach(each -> values.add(value(each, scope)));
        return values;
    }

    private @Nullable Object binary(Node.Binary binary, Scope scope) {
        Object left = value(binary.left(), scope);
        switch (binary.operator()) {
            case "and" -> {
                return Values.truth(left) ? value(binary.right(), scope) : left;
            }
            case "or" -> {
                return Values.truth(left) ? left : value(binary.right(), scope);
            }
            default -> {}
        }
        Object right = value(binary.right(), scope);
        return locatedValue(
                () -> binary.operator().equals("~")
                        ? Values.bounded(Values.text(left) + Values.text(right))
                        : Values.binary(binary.operator(), left, right),
                binary.line());
    }

    private boolean compared(Node.Compare compare, Scope scope) {
        Object left = value(compare.first(), scope);
        for (int i = 0; i < compare.operators().size(); i++) {
            Object right = value(compare.others().get(i), scope);
            boolean holds = switch (compare.operators().get(i)) {
                case "==" -> Values.equal(left, right);
                case "!=" -> !Values.equal(left, right);
                case "<" -> Values.compare(left, right) < 0;
                case "<=" -> Values.compare(left, right) <= 0;
                case ">" -> Values.compare(left, right) > 0;
                case ">=" -> Values.compare(left, right) >= 0;
                case "in" -> Values.contains(right, left);
                default -> !Values.contains(right, left);
            };
            if (!holds) {
                return false;
            }
            left = right;
        }
        return true;
    }

    private List<@Nullable Object> positional(Arguments arguments, Scope scope) {
        List<@Nullable Object> values = values(arguments.values(), scope);
        if (arguments.spread() != null) {
            values.addAll(Values.items(value(arguments.spread(), scope)));
        }
        return values;
    }

    private Map<String, @Nullable Object> named(Arguments arguments, Scope scope) {
        Map<String, @Nullable Object> named = new LinkedHashMap<>();
        arguments.named().forEach((name, each) -> named.put(name, value(each, scope)));
        return named;
    }

    private @Nullable Object called(
            Node.Call call, List<@Nullable Object> arguments, Map<String, @Nullable Object> named, Scope scope) {
        Object function = value(call.called(), scope);
        if (function instanceof Callable callable) {
            return callable.call(arguments, named);
        }
        throw Values.refusedType("there is no call", function);
    }

    private @Nullable Object filtered(Node.Filter filter, @Nullable Object of, Scope scope) {
        Values.spendOn(of);
        return builtins.filter(
                filter.name(), of, positional(filter.arguments(), scope), named(filter.arguments(), scope));
    }

    /** Looks up a method before a key, like Jinja. */
    @Nullable
    Object attribute(@Nullable Object of, String name) {
        if (name.startsWith("_")) {
            throw new TemplateException("access to attribute '" + name + "' is unsafe");
        }
        if (of instanceof LoopState loop) {
            return loop.attribute(name);
        }
        if (of instanceof Namespace namespace) {
            return namespace.attributes().containsKey(name)
                    ? namespace.attributes().get(name)
                    : new Undefined("the namespace has no attribute '" + name + "'");
        }
        Values.spendOn(of);
        Callable method = builtins.method(of, name);
        return method == null ? keyed(of, name) : method;
    }

    /** A key before a method. */
    @Nullable
    Object item(@Nullable Object of, @Nullable Object key) {
        if (key instanceof List || key instanceof Map || key instanceof Values.Tuple) {
            if (of instanceof Undefined undefined) {
                throw undefined.refused();
            }
            return new Undefined("there is no item of " + Values.type(of) + " at a " + Values.type(key));
        }
        if (of instanceof Map<?, ?> map && map.containsKey(key)) {
            return map.get(key);
        }
        if (key instanceof String name) {
            return attribute(of, name);
        }
        List<?> items = of instanceof List<?> list ? list : of instanceof Values.Tuple tuple ? tuple.items() : null;
        if (key instanceof Long || key instanceof Boolean) {
            long index = Values.integer(key);
            long size = items != null ? items.size() : of instanceof String text ? PyText.length(text) : -1;
            long place = index < 0 ? index + size : index;
            if (place >= 0 && place < size) {
                return items != null ? items.get((int) place) : PyText.at(String.valueOf(of), (int) place);
            }
        }
        return keyed(of, key);
    }

    private @Nullable Object keyed(@Nullable Object of, @Nullable Object key) {
        if (of instanceof Undefined undefined) {
            throw undefined.refused();
        }
        if (of instanceof Map<?, ?> map) {
            if (map.containsKey(key)) {
                return map.get(key);
            }
            if (strict) {
                throw new TemplateException("there is no \"" + key + "\" in the row");
            }
        }
        return new Undefined("'" + Values.type(of) + " object' has no attribute '" + key + "'");
    }
}
