package dev.millrace.policy.jinja;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Python's values in Java's: null is None; booleans, longs, doubles, strings, lists and maps with keys of these map
 * directly; other types are here. Operations that fail in Python fail here.
 */
final class Values {
    /** Limit of a text and of the whole output. */
    static final int MOST_CHARACTERS = 1_000_000;

    static final int MOST_ELEMENTS = 100_000;

    private static final int MOST_STEPS = 2_000_000;
    private static final int DEEPEST_VALUE = 200;
    /** Elements or characters copied per counted step. */
    private static final int ELEMENTS_OF_A_STEP = 16;

    private static final int CHARACTERS_OF_A_STEP = 256;

    /** Steps of this thread's rendering: every comparison and copy counts. */
    private static final ThreadLocal<long[]> STEPS = ThreadLocal.withInitial(() -> new long[1]);

    private Values() {}

    /** Resets the counter for a new rendering on this thread. */
    static void beginCounting() {
        STEPS.get()[0] = 0;
    }

    /** @throws TemplateException if they are too many */
    static void spend(long steps) {
        long[] spent = STEPS.get();
        spent[0] += steps;
        if (spent[0] > MOST_STEPS) {
            throw new TemplateException("it takes more than " + MOST_STEPS + " steps");
        }
    }

    /** Counts one pass over a value. */
    static void spendOn(@Nullable Object value) {
        if (value instanceof String text) {
            spend(text.length() / CHARACTERS_OF_A_STEP);
        } else {
            spend(elements(value).map(Collection::size).orElse(0) / ELEMENTS_OF_A_STEP);
        }
    }

    /** The elements of a list, tuple or view, or the keys of a dictionary; empty for other values. */
    private static Optional<Collection<?>> elements(@Nullable Object value) {
        if (value instanceof Map<?, ?> map) {
            return Optional.of(map.keySet());
        }
        if (value instanceof Tuple tuple) {
            return Optional.of(tuple.items());
        }
        if (value instanceof View view) {
            return Optional.of(view.items());
        }
        return value instanceof List<?> list ? Optional.of(list) : Optional.empty();
    }

    /** An undefined name or key: empty when printed or iterated, an error otherwise. */
    record Undefined(String what) {
        TemplateException refused() {
            return new TemplateException(what);
        }
    }

    record Tuple(List<@Nullable Object> items) {}

    /** Keys, values or items of a dictionary. */
    record View(String kind, List<@Nullable Object> items) {}

    /** Result of filters such as {@code map}: iterated once, without length and index, and always true. */
    static final class Generator {
        private final Iterator<@Nullable Object> left;

        Generator(List<@Nullable Object> items) {
            this.left = items.iterator();
        }

        Iterator<@Nullable Object> left() {
            return left;
        }
    }

    /** Result of {@code namespace()}, the only mutable value. */
    record Namespace(Map<String, @Nullable Object> attributes) {}

    interface Callable {
        @Nullable
        Object call(List<@Nullable Object> arguments, Map<String, @Nullable Object> named);
    }

    /** Copies external data into values of a program. */
    static @Nullable Object imported(@Nullable Object value) {
        return imported(value, 0);
    }

    private static @Nullable Object imported(@Nullable Object value, int depth) {
        if (depth > DEEPEST_VALUE) {
            throw new TemplateException("a value is nested more than " + DEEPEST_VALUE + " deep");
        }
        if (value instanceof Map<?, ?> map) {
            Map<Object, @Nullable Object> copy = new LinkedHashMap<>();
            map.forEach((key, each) -> copy.put(key, imported(each, depth + 1)));
            return copy;
        }
        if (value instanceof List<?> list) {
            List<@Nullable Object> copy = new ArrayList<>();
            list.forEach(each -> copy.add(imported(each, depth + 1)));
            return copy;
        }
        if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return ((Number) value).longValue();
        }
        if (value instanceof Float || value instanceof BigDecimal) {
            return ((Number) value).doubleValue();
        }
        if (value instanceof BigInteger big && big.bitLength() > 63) {
            throw new TemplateException("a number has more than 64 bits: " + big);
        }
        return value instanceof BigInteger big ? (Object) big.longValue() : value;
    }

    static boolean truth(@Nullable Object value) {
        if (value == null || value instanceof Undefined) {
            return false;
        }
        if (value instanceof Boolean is) {
            return is;
        }
        if (value instanceof Number number) {
            return number.doubleValue() != 0;
        }
        if (value instanceof String text) {
            return !text.isEmpty();
        }
        return elements(value).filter(Collection::isEmpty).isEmpty();
    }

    /** As {@code type(value).__name__}. */
    static String type(@Nullable Object value) {
        if (value == null) {
            return "NoneType";
        }
        if (value instanceof Boolean) {
            return "bool";
        }
        if (value instanceof Long) {
            return "int";
        }
        if (value instanceof Double) {
            return "float";
        }
        if (value instanceof String) {
            return "str";
        }
        if (value instanceof List) {
            return "list";
        }
        if (value instanceof Map) {
            return "dict";
        }
        if (value instanceof View view) {
            return view.kind();
        }
        return value instanceof Callable
                ? "function"
                : value.getClass().getSimpleName().toLowerCase(java.util.Locale.ROOT);
    }

    /** As {@code str}. */
    static String text(@Nullable Object value) {
        if (value instanceof String text) {
            return text;
        }
        if (value instanceof Undefined) {
            return "";
        }
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    /** As {@code repr}. */
    private static void write(@Nullable Object value, StringBuilder out) {
        spend(1);
        if (out.length() > MOST_CHARACTERS) {
            throw tooLong();
        }
        if (value == null) {
            out.append("None");
        } else if (value instanceof Boolean is) {
            out.append(is ? "True" : "False");
        } else if (value instanceof Long) {
            out.append(value);
        } else if (value instanceof Double number) {
            out.append(PyText.number(number));
        } else if (value instanceof String text) {
            out.append(PyText.quoted(text));
        } else if (value instanceof Undefined) {
            out.append("Undefined");
        } else if (value instanceof List<?> list) {
            write(list, "[", "]", out);
        } else if (value instanceof Tuple tuple) {
            write(tuple.items(), "(", tuple.items().size() == 1 ? ",)" : ")", out);
        } else if (value instanceof View view) {
            write(view.items(), view.kind() + "([", "])", out);
        } else if (value instanceof Map<?, ?> map) {
            out.append('{');
            String separator = "";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(separator);
                write(entry.getKey(), out);
                out.append(": ");
                write(entry.getValue(), out);
                separator = ", ";
            }
            out.append('}');
        } else {
            throw new TemplateException("it writes a " + type(value) + ", which has no text of its own");
        }
    }

    private static void write(List<?> items, String begin, String end, StringBuilder out) {
        out.append(begin);
        String separator = "";
        for (Object item : items) {
            out.append(separator);
            write(item, out);
            separator = ", ";
        }
        out.append(end);
    }

    static TemplateException tooLong() {
        return new TemplateException("it makes a text of more than " + MOST_CHARACTERS + " characters");
    }

    static String bounded(String text) {
        spendOn(text);
        if (text.length() > MOST_CHARACTERS) {
            throw tooLong();
        }
        return text;
    }

    static TemplateException refusedType(String what, @Nullable Object value) {
        return value instanceof Undefined undefined
                ? undefined.refused()
                : new TemplateException(what + " of " + type(value));
    }

    /** Returns the items that a loop iterates. */
    static List<@Nullable Object> items(@Nullable Object value) {
        spendOn(value);
        if (value instanceof Undefined) {
            return List.of();
        }
        if (value instanceof Tuple tuple) {
            return tuple.items();
        }
        if (value instanceof View view) {
            return view.items();
        }
        if (value instanceof List || value instanceof Map) {
            return new ArrayList<>(elements(value).orElseThrow());
        }
        if (value instanceof String text) {
            return new ArrayList<>(PyText.characters(text));
        }
        if (value instanceof Generator generator) {
            List<@Nullable Object> all = new ArrayList<>();
            generator.left().forEachRemaining(all::add);
            return all;
        }
        throw refusedType("there is nothing to go through", value);
    }

    /** As {@code len}. */
    static long length(@Nullable Object value) {
        if (value instanceof String text) {
            return PyText.length(text);
        }
        if (value instanceof Generator || value == null || value instanceof Number || value instanceof Boolean) {
            throw refusedType("there is no length", value);
        }
        return items(value).size();
    }

    static boolean isNumber(@Nullable Object value) {
        return value instanceof Long || value instanceof Double || value instanceof Boolean;
    }

    /** Booleans are numbers. */
    static Number number(@Nullable Object value) {
        if (value instanceof Boolean is) {
            return is ? 1L : 0L;
        }
        if (value instanceof Long || value instanceof Double) {
            return (Number) value;
        }
        throw refusedType("there is no number", value);
    }

    static long integer(@Nullable Object value) {
        if (number(value) instanceof Long whole) {
            return whole;
        }
        throw refusedType("there is no whole number", value);
    }

    static boolean equal(@Nullable Object a, @Nullable Object b) {
        spend(1);
        if (isNumber(a) && isNumber(b)) {
            Number left = number(a);
            Number right = number(b);
            return left instanceof Long && right instanceof Long
                    ? left.longValue() == right.longValue()
                    : left.doubleValue() == right.doubleValue();
        }
        if (a instanceof Undefined && b instanceof Undefined) {
            return true;
        }
        if (a instanceof List<?> left && b instanceof List<?> right) {
            return equalItems(left, right);
        }
        if (a instanceof Tuple left && b instanceof Tuple right) {
            return equalItems(left.items(), right.items());
        }
        if (a instanceof View left && b instanceof View right) {
            return left.kind().equals(right.kind()) && equalItems(left.items(), right.items());
        }
        if (a instanceof Map<?, ?> left && b instanceof Map<?, ?> right) {
            return left.size() == right.size()
                    && left.entrySet().stream()
                            .allMatch(entry -> right.containsKey(entry.getKey())
                                    && equal(entry.getValue(), right.get(entry.getKey())));
        }
        return a == null ? b == null : a.equals(b);
    }

    private static boolean equalItems(List<?> a, List<?> b) {
        if (a.size() != b.size()) {
            return false;
        }
        for (int i = 0; i < a.size(); i++) {
            if (!equal(a.get(i), b.get(i))) {
                return false;
            }
        }
        return true;
    }

    /** Negative, 0 or positive if a is below, equal to or above b. */
    static int compare(@Nullable Object a, @Nullable Object b) {
        spend(1);
        if (isNumber(a) && isNumber(b)) {
            Number left = number(a);
            Number right = number(b);
            return left instanceof Long && right instanceof Long
                    ? Long.compare(left.longValue(), right.longValue())
                    : Double.compare(left.doubleValue(), right.doubleValue());
        }
        if (a instanceof String left && b instanceof String right) {
            int[] ofLeft = left.codePoints().toArray();
            int[] ofRight = right.codePoints().toArray();
            return java.util.Arrays.compare(ofLeft, ofRight);
        }
        List<?> left = a instanceof Tuple tuple ? tuple.items() : a instanceof List<?> list ? list : null;
        List<?> right = b instanceof Tuple tuple ? tuple.items() : b instanceof List<?> list ? list : null;
        if (left != null && right != null && type(a).equals(type(b))) {
            for (int i = 0; i < Math.min(left.size(), right.size()); i++) {
                if (!equal(left.get(i), right.get(i))) {
                    return compare(left.get(i), right.get(i));
                }
            }
            return Integer.compare(left.size(), right.size());
        }
        if (a instanceof Undefined undefined) {
            throw undefined.refused();
        }
        if (b instanceof Undefined undefined) {
            throw undefined.refused();
        }
        throw new TemplateException("there is no order of " + type(a) + " and " + type(b));
    }

    /** Checks that a value may be a key, as Python's hashable. */
    static @Nullable Object key(@Nullable Object value) {
        spend(1);
        if (value instanceof Tuple tuple) {
            tuple.items().forEach(Values::key);
        } else if (value instanceof List
                || value instanceof Map
                || value instanceof View
                || value instanceof Undefined) {
            throw refusedType("there is no key", value);
        }
        return value;
    }

    /** As {@code item in container}. */
    static boolean contains(@Nullable Object container, @Nullable Object item) {
        spendOn(container);
        if (container instanceof String text) {
            if (item instanceof String part) {
                return text.contains(part);
            }
            throw refusedType("a text has no part that is", item);
        }
        if (container instanceof Map<?, ?> map) {
            return map.containsKey(key(item));
        }
        return items(container).stream().anyMatch(each -> equal(each, item));
    }

    static @Nullable Object binary(String operator, @Nullable Object a, @Nullable Object b) {
        spendOn(a);
        spendOn(b);
        if (a instanceof Undefined undefined) {
            throw undefined.refused();
        }
        if (b instanceof Undefined undefined) {
            throw undefined.refused();
        }
        if (operator.equals("+") && !(isNumber(a) && isNumber(b))) {
            return added(a, b);
        }
        if (operator.equals("*") && (a instanceof String || a instanceof List || a instanceof Tuple)) {
            return repeated(a, integer(b));
        }
        if (operator.equals("*") && (b instanceof String || b instanceof List || b instanceof Tuple)) {
            return repeated(b, integer(a));
        }
        if (operator.equals("%") && a instanceof String) {
            throw new TemplateException("it formats a text by %, which is not supported");
        }
        if (!isNumber(a) || !isNumber(b)) {
            throw new TemplateException("there is no " + operator + " of " + type(a) + " and " + type(b));
        }
        return arithmetic(operator, number(a), number(b));
    }

    private static Object added(@Nullable Object a, @Nullable Object b) {
        if (a instanceof String left && b instanceof String right) {
            if ((long) left.length() + right.length() > MOST_CHARACTERS) {
                throw tooLong();
            }
            return left + right;
        }
        if (a instanceof List<?> left && b instanceof List<?> right) {
            return joined(left, right);
        }
        if (a instanceof Tuple left && b instanceof Tuple right) {
            return new Tuple(joined(left.items(), right.items()));
        }
        throw new TemplateException("there is no + of " + type(a) + " and " + type(b));
    }

    private static List<@Nullable Object> joined(List<?> a, List<?> b) {
        List<@Nullable Object> all = new ArrayList<>(a);
        all.addAll(b);
        return boundedList(all);
    }

    static List<@Nullable Object> boundedList(List<@Nullable Object> list) {
        if (list.size() > MOST_ELEMENTS) {
            throw new TemplateException("it makes a list of more than " + MOST_ELEMENTS + " elements");
        }
        return list;
    }

    private static Object repeated(Object value, long times) {
        long count = Math.max(0, times);
        if (value instanceof String text) {
            if (!text.isEmpty() && count > MOST_CHARACTERS / text.length()) {
                throw tooLong();
            }
            return text.isEmpty() ? "" : text.repeat((int) count);
        }
        List<@Nullable Object> all = new ArrayList<>();
        List<@Nullable Object> items = items(value);
        for (long i = 0; i < count && !items.isEmpty(); i++) {
            all.addAll(items);
            boundedList(all);
        }
        return value instanceof Tuple ? new Tuple(all) : all;
    }

    private static Object arithmetic(String operator, Number a, Number b) {
        boolean isWhole = a instanceof Long && b instanceof Long;
        if ((operator.equals("/") || operator.equals("//") || operator.equals("%")) && b.doubleValue() == 0) {
            throw new TemplateException("it divides by zero");
        }
        try {
            if (isWhole) {
                long left = a.longValue();
                long right = b.longValue();
                switch (operator) {
                    case "+" -> {
                        return Math.addExact(left, right);
                    }
                    case "-" -> {
                        return Math.subtractExact(left, right);
                    }
                    case "*" -> {
                        return Math.multiplyExact(left, right);
                    }
                    case "//" -> {
                        return Math.floorDiv(left, right);
                    }
                    case "%" -> {
                        return Math.floorMod(left, right);
                    }
                    case "**" -> {
                        if (right >= 0) {
                            return BigInteger.valueOf(left)
                                    .pow((int) Math.min(right, left >= -1 && left <= 1 ? 2 + right % 2 : 64))
                                    .longValueExact();
                        }
                    }
                    default -> {}
                }
            }
        } catch (ArithmeticException e) {
            throw new TemplateException("it makes a number of more than 64 bits");
        }
        double left = a.doubleValue();
        double right = b.doubleValue();
        return switch (operator) {
            case "+" -> left + right;
            case "-" -> left - right;
            case "*" -> left * right;
            case "/" -> left / right;
            case "//" -> Math.floor(left / right);
            case "%" -> {
                double rest = left % right;
                yield rest != 0 && rest < 0 != right < 0 ? rest + right : rest;
            }
            case "**" -> Math.pow(left, right);
            default -> throw new IllegalStateException(operator);
        };
    }

    /** The elements of a slice, as Python counts. */
    static @Nullable Object sliced(
            @Nullable Object of, @Nullable Object from, @Nullable Object to, @Nullable Object by) {
        if (of instanceof Undefined || !(of instanceof String || of instanceof List || of instanceof Tuple)) {
            throw refusedType("there is no slice", of);
        }
        List<@Nullable Object> all = items(of);
        long step = by == null ? 1 : integer(by);
        if (step == 0) {
            throw new TemplateException("the step of a slice is 0");
        }
        int size = all.size();
        step = Math.max(-size - 1L, Math.min(size + 1L, step)); // a longer one passes the end as well
        long lowest = step > 0 ? 0 : -1;
        long highest = step > 0 ? size : size - 1;
        long start = from == null ? (step > 0 ? lowest : highest) : placed(integer(from), size, lowest, highest);
        long stop = to == null ? (step > 0 ? highest : lowest) : placed(integer(to), size, lowest, highest);
        List<@Nullable Object> found = new ArrayList<>();
        for (long i = start; step > 0 ? i < stop : i > stop; i += step) {
            found.add(all.get((int) i));
        }
        if (of instanceof String) {
            StringBuilder text = new StringBuilder();
            found.forEach(text::append);
            return text.toString();
        }
        return of instanceof Tuple ? new Tuple(found) : found;
    }

    private static long placed(long index, int size, long lowest, long highest) {
        return Math.max(lowest, Math.min(highest, index < 0 ? index + size : index));
    }

    /**
     * As {@code json.dumps}.
     *
     * @param indent blanks of a level; null for one line
     */
    static String json(
            @Nullable Object value,
            boolean asciiOnly,
            @Nullable String indent,
            String itemEnd,
            String keyEnd,
            boolean sorted) {
        StringBuilder out = new StringBuilder();
        new JsonWriter(asciiOnly, indent, itemEnd, keyEnd, sorted, out).write(value, 0);
        return out.toString();
    }

    private record JsonWriter(
            boolean asciiOnly,
            @Nullable String indent,
            String itemEnd,
            String keyEnd,
            boolean sorted,
            StringBuilder out) {
        void write(@Nullable Object value, int level) {
            spend(1);
            if (out.length() > MOST_CHARACTERS) {
                throw tooLong();
            }
            if (value instanceof String text) {
                PyText.json(text, asciiOnly, out);
            } else if (value instanceof Map<?, ?> map) {
                List<Map.Entry<?, ?>> entries = new ArrayList<>(map.entrySet());
                if (sorted) {
                    entries.sort((a, b) -> compare(a.getKey(), b.getKey()));
                }
                out.append('{');
                String separator = "";
                for (Map.Entry<?, ?> entry : entries) {
                    out.append(separator);
                    line(level + 1);
                    PyText.json(key(entry.getKey()), asciiOnly, out);
                    out.append(keyEnd);
                    write(entry.getValue(), level + 1);
                    separator = itemEnd;
                }
                end("}", entries.isEmpty(), level);
            } else if (value instanceof List || value instanceof Tuple) {
                List<@Nullable Object> items = items(value);
                out.append('[');
                String separator = "";
                for (Object item : items) {
                    out.append(separator);
                    line(level + 1);
                    write(item, level + 1);
                    separator = itemEnd;
                }
                end("]", items.isEmpty(), level);
            } else {
                out.append(scalar(value));
            }
        }

        private void end(String bracket, boolean isEmpty, int level) {
            if (!isEmpty) {
                line(level);
            }
            out.append(bracket);
        }

        private void line(int level) {
            if (indent != null) {
                out.append('\n').append(indent.repeat(level));
            }
        }

        private static String key(Object key) {
            return key instanceof String text ? text : scalar(key);
        }

        private static String scalar(@Nullable Object value) {
            if (value == null) {
                return "null";
            }
            if (value instanceof Boolean is) {
                return is ? "true" : "false";
            }
            if (value instanceof Double number && !Double.isFinite(number)) {
                return Double.isNaN(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
            }
            if (isNumber(value)) {
                return text(value);
            }
            throw refusedType("there is no JSON", value);
        }
    }
}
