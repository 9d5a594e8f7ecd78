package dev.millrace.policy.jinja;

import dev.millrace.policy.jinja.Values.Callable;
import dev.millrace.policy.jinja.Values.Generator;
import dev.millrace.policy.jinja.Values.Namespace;
import dev.millrace.policy.jinja.Values.Tuple;
import dev.millrace.policy.jinja.Values.Undefined;
import dev.millrace.policy.jinja.Values.View;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Functions, methods, filters and tests of chat templates; unsupported ones are refused by name. */
final class Builtins {
    /** Methods that would change a value, which the sandbox refuses. */
    private static final Set<String> CHANGING = Set.of(
            "append",
            "extend",
            "insert",
            "remove",
            "pop",
            "clear",
            "sort",
            "reverse",
            "update",
            "setdefault",
            "popitem",
            "add");

    private final Interpreter interpreter;

    Builtins(Interpreter interpreter) {
        this.interpreter = interpreter;
    }

    /** Positional and keyword arguments of a call. */
    private static final class Given {
        private final String of;
        private final List<@Nullable Object> values;
        private final Map<String, @Nullable Object> named;
        private int taken;

        Given(String of, List<@Nullable Object> values, Map<String, @Nullable Object> named) {
            this.of = of;
            this.values = values;
            this.named = new HashMap<>(named);
        }

        boolean has(String name) {
            return taken < values.size() || named.containsKey(name);
        }

        @Nullable
        Object next(String name, @Nullable Object otherwise) {
            return taken < values.size()
                    ? values.get(taken++)
                    : named.containsKey(name) ? named.remove(name) : otherwise;
        }

        @Nullable
        Object required(String name) {
            if (!has(name)) {
                throw new TemplateException(of + " needs " + name);
            }
            return next(name, null);
        }

        String text(String name) {
            Object value = required(name);
            if (value instanceof String text) {
                return text;
            }
            throw Values.refusedType(of + " needs a text as " + name + ", instead", value);
        }

        void end() {
            if (taken < values.size() || !named.isEmpty()) {
                throw new TemplateException(of + " takes no argument "
                        + (named.isEmpty()
                                ? "number " + (taken + 1)
                                : named.keySet().iterator().next()));
            }
        }
    }

    Map<String, Object> functions() {
        Map<String, Object> functions = new HashMap<>();
        functions.put("range", (Callable) (arguments, named) -> range(new Given("range", arguments, named)));
        functions.put("dict", (Callable) (arguments, named) -> dictionary(arguments, named));
        functions.put("namespace", (Callable) (arguments, named) -> {
            Map<String, @Nullable Object> attributes = new LinkedHashMap<>();
            dictionary(arguments, named).forEach((key, value) -> attributes.put(Values.text(key), value));
            return new Namespace(attributes);
        });
        functions.put("raise_exception", (Callable) (arguments, named) -> {
            throw new TemplateException.RaisedException(
                    Values.text(new Given("raise_exception", arguments, named).required("message")));
        });
        functions.put("joiner", (Callable) (arguments, named) -> {
            String separator = Values.text(new Given("joiner", arguments, named).next("sep", ", "));
            boolean[] isUsed = new boolean[1];
            return (Callable) (none, nothing) -> {
                String text = isUsed[0] ? separator : "";
                isUsed[0] = true;
                return text;
            };
        });
        return functions;
    }

    private static Map<Object, @Nullable Object> dictionary(
            List<@Nullable Object> arguments, Map<String, @Nullable Object> named) {
        Map<Object, @Nullable Object> made = new LinkedHashMap<>();
        for (Object argument : arguments) {
            if (argument instanceof Map<?, ?> map) {
                made.putAll(map);
            } else {
                for (Object pair : Values.items(argument)) {
                    List<@Nullable Object> two = Values.items(pair);
                    if (two.size() != 2) {
                        throw new TemplateException("a dictionary is made of pairs");
                    }
                    made.put(Values.key(two.get(0)), two.get(1));
                }
            }
        }
        made.putAll(named);
        return made;
    }

    private static List<@Nullable Object> range(Given given) {
        long first = Values.integer(given.required("a start or end"));
        boolean isPair = given.has("end");
        long start = isPair ? first : 0;
        long stop = isPair ? Values.integer(given.required("end")) : first;
        long step = Values.integer(given.next("step", 1L));
        given.end();
        if (step == 0) {
            throw new TemplateException("range takes a step that is not 0");
        }
        List<@Nullable Object> numbers = new ArrayList<>();
        for (long each = start; step > 0 ? each < stop : each > stop; each += step) {
            if (numbers.size() == Values.MOST_ELEMENTS) {
                throw new TemplateException("range has more than " + Values.MOST_ELEMENTS + " numbers");
            }
            numbers.add(each);
        }
        return numbers;
    }

    /** A value's method; null if it has none of this name. */
    @Nullable
    Callable method(@Nullable Object of, String name) {
        boolean isContainer = of instanceof List || of instanceof Map;
        if (isContainer && CHANGING.contains(name) && !(of instanceof Map<?, ?> && isKeyAlone(name))) {
            return (arguments, named) -> {
                throw new TemplateException(
                        "it changes a " + Values.type(of) + " by " + name + ", which is not allowed");
            };
        }
        if (of instanceof String text) {
            return ofText(text, name);
        }
        if (of instanceof Map<?, ?> map) {
            return ofDictionary(map, name);
        }
        List<?> items = of instanceof List<?> list ? list : of instanceof Tuple tuple ? tuple.items() : null;
        if (items == null) {
            return null;
        }
        return switch (name) {
            case "count" ->
                (arguments, named) -> {
                    Object value = new Given(name, arguments, named).required("value");
                    return items.stream()
                            .filter(each -> Values.equal(each, value))
                            .count();
                };
            case "index" ->
                (arguments, named) -> {
                    Object value = new Given(name, arguments, named).required("value");
                    for (int i = 0; i < items.size(); i++) {
                        if (Values.equal(items.get(i), value)) {
                            return (long) i;
                        }
                    }
                    throw new TemplateException("the list does not hold what its index is asked for");
                };
            case "copy" -> (arguments, named) -> new ArrayList<>(items);
            default -> null;
        };
    }

    /** Names of list methods that a dictionary lacks. */
    private static boolean isKeyAlone(String name) {
        return !Set.of("clear", "pop", "update", "setdefault", "popitem").contains(name);
    }

    private static @Nullable Callable ofDictionary(Map<?, ?> map, String name) {
        return switch (name) {
            case "items" -> (arguments, named) -> new View("dict_items", pairs(map));
            case "keys" -> (arguments, named) -> new View("dict_keys", new ArrayList<>(map.keySet()));
            case "values" -> (arguments, named) -> new View("dict_values", new ArrayList<>(map.values()));
            case "copy" -> (arguments, named) -> new LinkedHashMap<Object, Object>(map);
            case "get" ->
                (arguments, named) -> {
                    Given given = new Given(name, arguments, named);
                    Object key = Values.key(given.required("key"));
                    Object otherwise = given.next("default", null);
                    return map.containsKey(key) ? map.get(key) : otherwise;
                };
            default -> null;
        };
    }

    private static List<@Nullable Object> pairs(Map<?, ?> map) {
        List<@Nullable Object> pairs = new ArrayList<>();
        map.forEach((key, value) -> pairs.add(pair(key, value)));
        return pairs;
    }

    private static Tuple pair(@Nullable Object a, @Nullable Object b) {
        List<@Nullable Object> two = new ArrayList<>();
        two.add(a);
        two.add(b);
        return new Tuple(two);
    }

    private static @Nullable Callable ofText(String text, String name) {
        Function<Given, @Nullable Object> body = switch (name) {
            case "strip", "lstrip", "rstrip" ->
                given -> {
                    Object characters = given.next("chars", null);
                    return PyText.stripped(
                            text,
                            characters == null ? null : Values.text(characters),
                            !name.equals("rstrip"),
                            !name.equals("lstrip"));
                };
            case "split", "rsplit" ->
                given -> {
                    Object by = given.next("sep", null);
                    long most = Values.integer(given.next("maxsplit", -1L));
                    if (by == null) {
                        if (name.equals("rsplit") && most >= 0) {
                            throw new TemplateException("rsplit at blanks with a bound is not supported");
                        }
                        return Values.boundedList(PyText.words(text, most));
                    }
                    if (!(by instanceof String separator) || separator.isEmpty()) {
                        throw new TemplateException(name + " needs a text that is not empty");
                    }
                    return Values.boundedList(
                            name.equals("split")
                                    ? PyText.split(text, separator, most)
                                    : PyText.splitRight(text, separator, most));
                };
            case "splitlines" ->
                given -> Values.boundedList(PyText.lines(text, Values.truth(given.next("keepends", false))));
            case "startswith" -> given -> anyOf(given.required("prefix"), text::startsWith);
            case "endswith" -> given -> anyOf(given.required("suffix"), text::endsWith);
            case "removeprefix" ->
                given -> {
                    String prefix = given.text("prefix");
                    return text.startsWith(prefix) ? text.substring(prefix.length()) : text;
                };
            case "removesuffix" ->
                given -> {
                    String suffix = given.text("suffix");
                    return text.endsWith(suffix) ? text.substring(0, text.length() - suffix.length()) : text;
                };
            case "upper" -> given -> text.toUpperCase(Locale.ROOT);
            case "lower", "casefold" -> given -> text.toLowerCase(Locale.ROOT);
            case "title" -> given -> PyText.titled(text);
            case "capitalize" -> given -> PyText.capitalized(text);
            case "replace" ->
                given -> {
                    String old = given.text("old");
                    String by = given.text("new");
                    return replaced(text, old, by, Values.integer(given.next("count", -1L)));
                };
            case "find", "index" ->
                given -> {
                    int place = text.indexOf(given.text("part"));
                    if (place < 0 && name.equals("index")) {
                        throw new TemplateException("the text does not hold what its index is asked for");
                    }
                    return place < 0 ? -1L : (long) text.codePointCount(0, place);
                };
            case "rfind" ->
                given -> {
                    int place = text.lastIndexOf(given.text("part"));
                    return place < 0 ? -1L : (long) text.codePointCount(0, place);
                };
            case "count" ->
                given -> {
                    String part = given.text("part");
                    return part.isEmpty()
                            ? PyText.length(text) + 1L
                            : PyText.split(text, part, -1).size() - 1L;
                };
            case "join" ->
                given -> {
                    StringBuilder joined = new StringBuilder();
                    String separator = "";
                    for (Object each : Values.items(given.required("items"))) {
                        if (!(each instanceof String part)) {
                            throw Values.refusedType("a text joins texts, and not one", each);
                        }
                        joined.append(separator).append(part);
                        if (joined.length() > Values.MOST_CHARACTERS) {
                            throw Values.tooLong();
                        }
                        separator = text;
                    }
                    return joined.toString();
                };
            case "isdigit", "isnumeric", "isdecimal" -> given -> all(text, Character::isDigit);
            case "isalpha" -> given -> all(text, Character::isLetter);
            case "isalnum" -> given -> all(text, Character::isLetterOrDigit);
            case "isspace" -> given -> all(text, PyText::isSpace);
            case "isupper" -> given -> isUpper(text);
            case "islower" -> given -> isLower(text);
            default -> null;
        };
        if (body == null) {
            return null;
        }
        return (arguments, named) -> {
            Given given = new Given(name, arguments, named);
            Object result = body.apply(given);
            given.end();
            return result;
        };
    }

    private static boolean isUpper(String text) {
        return !text.equals(text.toLowerCase(Locale.ROOT)) && text.equals(text.toUpperCase(Locale.ROOT));
    }

    private static boolean isLower(String text) {
        return !text.equals(text.toUpperCase(Locale.ROOT)) && text.equals(text.toLowerCase(Locale.ROOT));
    }

    private static boolean all(String text, java.util.function.IntPredicate holds) {
        return !text.isEmpty() && text.codePoints().allMatch(holds);
    }

    private static boolean anyOf(@Nullable Object texts, Predicate<String> holds) {
        if (texts instanceof String one) {
            return holds.test(one);
        }
        if (texts instanceof Tuple several) {
            return several.items().stream().anyMatch(each -> each instanceof String one && holds.test(one));
        }
        throw Values.refusedType("a text begins or ends with a text or a tuple of these, and not with one", texts);
    }

    private static String replaced(String text, String old, String by, long most) {
        StringBuilder out = new StringBuilder();
        long times = 0;
        int from = 0;
        while (most < 0 || times < most) {
            int at = old.isEmpty()
                    ? (times == 0 ? 0 : from < text.length() ? text.offsetByCodePoints(from, 1) : -1)
                    : text.indexOf(old, from);
            if (at < 0) {
                break;
            }
            out.append(text, from, at).append(by);
            from = at + old.length();
            times++;
            if (out.length() > Values.MOST_CHARACTERS) {
                throw Values.tooLong();
            }
        }
        return out.append(text, from, text.length()).toString();
    }

    @Nullable
    Object filter(
            String name, @Nullable Object of, List<@Nullable Object> arguments, Map<String, @Nullable Object> named) {
        Given given = new Given("filter " + name, arguments, named);
        Object result = filter(name, of, given);
        given.end();
        return result;
    }

    private @Nullable Object filter(String name, @Nullable Object of, Given given) {
        return switch (name) {
            case "default", "d" -> {
                Object otherwise = given.next("default_value", "");
                boolean isOfFalse = Values.truth(given.next("boolean", false));
                yield of instanceof Undefined || isOfFalse && !Values.truth(of) ? otherwise : of;
            }
            case "trim" -> {
                Object characters = given.next("chars", null);
                yield PyText.stripped(Values.text(of), characters == null ? null : Values.text(characters), true, true);
            }
            case "length", "count" -> Values.length(of);
            case "upper" -> Values.text(of).toUpperCase(Locale.ROOT);
            case "lower" -> Values.text(of).toLowerCase(Locale.ROOT);
            case "capitalize" -> PyText.capitalized(Values.text(of));
            case "title" -> titled(Values.text(of));
            case "string" -> Values.text(of);
            case "safe" -> Values.text(of);
            case "replace" -> {
                String old = Values.text(given.required("old"));
                String by = Values.text(given.required("new"));
                Object most = given.next("count", null);
                yield replaced(Values.text(of), old, by, most == null ? -1 : Values.integer(most));
            }
            case "join" -> joined(of, given);
            case "first" -> {
                if (of instanceof Generator generator) {
                    yield generator.left().hasNext() ? generator.left().next() : none(name);
                }
                List<@Nullable Object> items = Values.items(of);
                yield items.isEmpty() ? none(name) : items.get(0);
            }
            case "last" -> {
                if (of instanceof Generator) {
                    throw new TemplateException("there is no last of a generator; make it a list");
                }
                List<@Nullable Object> items = Values.items(of);
                yield items.isEmpty() ? none(name) : items.get(items.size() - 1);
            }
            case "list" -> new ArrayList<>(Values.items(of));
            case "reverse" -> {
                if (of instanceof String text) {
                    yield new StringBuilder(text).reverse().toString();
                }
                List<@Nullable Object> items = new ArrayList<>(Values.items(of));
                Collections.reverse(items);
                yield new Generator(items);
            }
            case "items" -> {
                if (of instanceof Undefined) {
                    yield new Generator(List.of());
                }
                if (of instanceof Map<?, ?> map) {
                    yield new Generator(pairs(map));
                }
                throw Values.refusedType("there are no items", of);
            }
            case "dictsort" -> dictionarySorted(of, given);
            case "sort" -> {
                boolean isReversed = Values.truth(given.next("reverse", false));
                boolean isCased = Values.truth(given.next("case_sensitive", false));
                Function<@Nullable Object, @Nullable Object> key = attribute(given.next("attribute", null), null);
                List<@Nullable Object> items = new ArrayList<>(Values.items(of));
                Comparator<@Nullable Object> order =
                        (a, b) -> Values.compare(key(key.apply(a), isCased), key(key.apply(b), isCased));
                items.sort(isReversed ? order.reversed() : order);
                yield items;
            }
            case "unique" -> {
                boolean isCased = Values.truth(given.next("case_sensitive", false));
                Function<@Nullable Object, @Nullable Object> key = attribute(given.next("attribute", null), null);
                List<@Nullable Object> seen = new ArrayList<>();
                List<@Nullable Object> kept = new ArrayList<>();
                for (Object each : Values.items(of)) {
                    Object by = key(key.apply(each), isCased);
                    if (seen.stream().noneMatch(other -> Values.equal(other, by))) {
                        seen.add(by);
                        kept.add(each);
                    }
                }
                yield new Generator(kept);
            }
            case "map" -> mapped(of, given);
            case "select", "reject", "selectattr", "rejectattr" -> selected(name, of, given);
            case "sum" -> {
                Function<@Nullable Object, @Nullable Object> value = attribute(given.next("attribute", null), null);
                Object sum = given.next("start", 0L);
                for (Object each : Values.items(of)) {
                    sum = Values.binary("+", sum, value.apply(each));
                }
                yield sum;
            }
            case "min", "max" -> {
                boolean isCased = Values.truth(given.next("case_sensitive", false));
                Function<@Nullable Object, @Nullable Object> value = attribute(given.next("attribute", null), null);
                Comparator<@Nullable Object> order =
                        (a, b) -> Values.compare(key(value.apply(a), isCased), key(value.apply(b), isCased));
                List<@Nullable Object> items = Values.items(of);
                if (items.isEmpty()) {
                    yield none(name);
                }
                Object best = items.get(0);
                for (Object each : items) {
                    int compared = order.compare(each, best);
                    best = name.equals("min") ? compared < 0 ? each : best : compared > 0 ? each : best;
                }
                yield best;
            }
            case "abs" ->
                Values.number(of) instanceof Long whole
                        ? (Object) Math.abs(whole)
                        : Math.abs(Values.number(of).doubleValue());
            case "round" -> rounded(of, given);
            case "int" -> integer(of, given.next("default", 0L));
            case "float" -> decimal(of, given.next("default", 0.0));
            case "tojson" -> json(of, given);
            case "indent" -> indented(Values.text(of), given);
            case "wordcount" -> (long) Values.text(of).split("\\W+").length;
            case "attr" -> interpreter.attribute(of, given.text("name"));
            default -> throw new TemplateException("there is no filter '" + name + "'");
        };
    }

    private static Undefined none(String name) {
        return new Undefined("filter " + name + " has nothing to choose from");
    }

    /** As in Jinja, not Python: capitalizes a letter after a blank or one of -([{<. */
    private static String titled(String text) {
        StringBuilder out = new StringBuilder();
        boolean isFirst = true;
        for (int c : text.codePoints().toArray()) {
            boolean isBetween = PyText.isSpace(c) || "-({[<".indexOf(c) >= 0;
            out.appendCodePoint(isBetween ? c : isFirst ? Character.toUpperCase(c) : Character.toLowerCase(c));
            isFirst = isBetween;
        }
        return out.toString();
    }

    private String joined(@Nullable Object of, Given given) {
        String by = Values.text(given.next("d", ""));
        Function<@Nullable Object, @Nullable Object> value = attribute(given.next("attribute", null), null);
        StringBuilder joined = new StringBuilder();
        String separator = "";
        for (Object each : Values.items(of)) {
            joined.append(separator).append(Values.text(value.apply(each)));
            if (joined.length() > Values.MOST_CHARACTERS) {
                throw Values.tooLong();
            }
            separator = by;
        }
        return joined.toString();
    }

    /** Resolves a dotted attribute of a value; the value itself without an attribute. */
    private Function<@Nullable Object, @Nullable Object> attribute(@Nullable Object path, @Nullable Object otherwise) {
        if (path == null) {
            return value -> value;
        }
        List<Object> parts = new ArrayList<>();
        if (path instanceof Long) {
            parts.add(path);
        } else {
            for (Object part : PyText.split(Values.text(path), ".", -1)) {
                parts.add(((String) part).matches("\\d{1,18}") ? (Object) Long.parseLong((String) part) : part);
            }
        }
        return value -> {
            Object found = value;
            for (Object part : parts) {
                found = interpreter.item(found, part);
                if (found instanceof Undefined && otherwise != null) {
                    return otherwise;
                }
            }
            return found;
        };
    }

    private static @Nullable Object key(@Nullable Object value, boolean isCased) {
        return value instanceof String text && !isCased ? text.toLowerCase(Locale.ROOT) : value;
    }

    private static List<@Nullable Object> dictionarySorted(@Nullable Object of, Given given) {
        if (!(of instanceof Map<?, ?> map)) {
            throw Values.refusedType("there are no items", of);
        }
        boolean isCased = Values.truth(given.next("case_sensitive", false));
        String by = Values.text(given.next("by", "key"));
        boolean isReversed = Values.truth(given.next("reverse", false));
        int place = by.equals("key") ? 0 : 1;
        if (place == 1 && !by.equals("value")) {
            throw new TemplateException("dictsort sorts by key or value, and not by " + by);
        }
        List<@Nullable Object> pairs = pairs(map);
        Comparator<@Nullable Object> order = (a, b) -> Values.compare(
                key(Values.items(a).get(place), isCased), key(Values.items(b).get(place), isCased));
        pairs.sort(isReversed ? order.reversed() : order);
        return pairs;
    }

    private Generator mapped(@Nullable Object of, Given given) {
        Function<@Nullable Object, @Nullable Object> work;
        if (given.values.isEmpty() && given.has("attribute")) {
            Object path = given.next("attribute", null);
            work = attribute(path, given.next("default", null));
        } else {
            String name = given.text("filter");
            List<@Nullable Object> arguments = List.copyOf(rest(given));
            Map<String, @Nullable Object> named = new HashMap<>(given.named);
            given.named.clear();
            work = value -> filter(name, value, arguments, named);
        }
        List<@Nullable Object> made = new ArrayList<>();
        Values.items(of).forEach(each -> made.add(work.apply(each)));
        return new Generator(made);
    }

    private static List<@Nullable Object> rest(Given given) {
        List<@Nullable Object> rest = new ArrayList<>();
        while (given.taken < given.values.size()) {
            rest.add(given.next("", null));
        }
        return rest;
    }

    private Generator selected(String name, @Nullable Object of, Given given) {
        Function<@Nullable Object, @Nullable Object> value =
                name.endsWith("attr") ? attribute(given.required("attribute"), null) : each -> each;
        boolean isTested = given.has("test");
        String test = isTested ? given.text("test") : "";
        List<@Nullable Object> arguments = rest(given);
        boolean isSelecting = name.startsWith("select");
        List<@Nullable Object> kept = new ArrayList<>();
        for (Object each : Values.items(of)) {
            Object tested = value.apply(each);
            if ((isTested ? test(test, tested, arguments) : Values.truth(tested)) == isSelecting) {
                kept.add(each);
            }
        }
        return new Generator(kept);
    }

    private static Object rounded(@Nullable Object of, Given given) {
        int digits = Math.toIntExact(Math.max(-30, Math.min(30, Values.integer(given.next("precision", 0L)))));
        String method = Values.text(given.next("method", "common"));
        RoundingMode mode = switch (method) {
            case "common" -> RoundingMode.HALF_EVEN;
            case "ceil" -> RoundingMode.CEILING;
            case "floor" -> RoundingMode.FLOOR;
            default -> throw new TemplateException("round knows common, ceil and floor, and not " + method);
        };
        double value = Values.number(of).doubleValue();
        double result = Double.isFinite(value)
                ? new BigDecimal(value).setScale(digits, mode).doubleValue()
                : value;
        return Values.number(of) instanceof Long whole && method.equals("common") && digits >= 0
                ? (Object) whole
                : result;
    }

    private static @Nullable Object integer(@Nullable Object of, @Nullable Object otherwise) {
        if (of instanceof Double number) {
            return Double.isFinite(number) && Math.abs(number) < 9.2e18 ? (Object) number.longValue() : otherwise;
        }
        if (Values.isNumber(of)) {
            return Values.integer(of);
        }
        if (of instanceof String text) {
            String digits = PyText.stripped(text, null, true, true).replaceAll("(?<=\\d)_(?=\\d)", "");
            if (digits.matches("[+-]?\\d{1,18}")) {
                return Long.parseLong(digits);
            }
            Object number = decimal(text, null);
            return number instanceof Double value ? integer(value, otherwise) : otherwise;
        }
        return otherwise;
    }

    private static @Nullable Object decimal(@Nullable Object of, @Nullable Object otherwise) {
        if (Values.isNumber(of)) {
            return Values.number(of).doubleValue();
        }
        if (of instanceof String text) {
            String digits = PyText.stripped(text, null, true, true).replaceAll("(?<=\\d)_(?=\\d)", "");
            if (digits.matches("[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?")) {
                return Double.parseDouble(digits);
            }
            if (digits.matches("(?i)[+-]?(?:inf|infinity)")) {
                return digits.startsWith("-") ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
            }
            return digits.matches("(?i)[+-]?nan") ? (Object) Double.NaN : otherwise;
        }
        return otherwise;
    }

    /** As the filter of transformers: a text of {@code json.dumps}. */
    private static String json(@Nullable Object of, Given given) {
        boolean isAscii = Values.truth(given.next("ensure_ascii", false));
        Object indent = given.next("indent", null);
        Object separators = given.next("separators", null);
        boolean isSorted = Values.truth(given.next("sort_keys", false));
        String blanks = indent == null
                ? null
                : indent instanceof String text
                        ? text
                        : " ".repeat((int) Math.max(0, Math.min(100, Values.integer(indent))));
        List<@Nullable Object> both = separators == null ? List.of() : Values.items(separators);
        if (separators != null && both.size() != 2) {
            throw new TemplateException("separators are two texts");
        }
        return Values.json(
                of,
                isAscii,
                blanks,
                both.isEmpty() ? blanks == null ? ", " : "," : Values.text(both.get(0)),
                both.isEmpty() ? ": " : Values.text(both.get(1)),
                isSorted);
    }

    private static String indented(String text, Given given) {
        Object width = given.next("width", 4L);
        boolean isFirst = Values.truth(given.next("first", false));
        boolean isBlank = Values.truth(given.next("blank", false));
        String blanks = width instanceof String own
                ? own
                : " ".repeat((int) Math.max(0, Math.min(1000, Values.integer(width))));
        List<Object> lines = PyText.lines(text + "\n", false);
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < lines.size(); i++) {
            String line = (String) lines.get(i);
            boolean isIndented = i == 0 ? isFirst : isBlank || !line.isEmpty();
            out.append(i == 0 ? "" : "\n").append(isIndented ? blanks : "").append(line);
            if (out.length() > Values.MOST_CHARACTERS) {
                throw Values.tooLong();
            }
        }
        return out.toString();
    }

    boolean test(String name, @Nullable Object of, List<@Nullable Object> arguments) {
        Iterator<@Nullable Object> given = arguments.iterator();
        boolean holds = switch (name) {
            case "defined" -> !(of instanceof Undefined);
            case "undefined" -> of instanceof Undefined;
            case "none" -> of == null;
            case "boolean" -> of instanceof Boolean;
            case "true" -> Boolean.TRUE.equals(of);
            case "false" -> Boolean.FALSE.equals(of);
            case "integer" -> of instanceof Long;
            case "float" -> of instanceof Double;
            case "number" -> Values.isNumber(of);
            case "string" -> of instanceof String;
            case "mapping" -> of instanceof Map;
            case "sequence" ->
                of instanceof String
                        || of instanceof List
                        || of instanceof Tuple
                        || of instanceof Map
                        || of instanceof Undefined nothing && sequenceOfNothing(nothing);
            case "iterable" ->
                of instanceof String
                        || of instanceof List
                        || of instanceof Tuple
                        || of instanceof Map
                        || of instanceof View
                        || of instanceof Generator
                        || of instanceof Undefined;
            case "callable" -> of instanceof Callable;
            case "even" -> Values.integer(of) % 2 == 0;
            case "odd" -> Values.integer(of) % 2 != 0;
            case "divisibleby" -> Values.equal(Values.binary("%", Values.number(of), next(name, given)), 0L);
            case "eq", "==", "equalto" -> Values.equal(of, next(name, given));
            case "ne", "!=" -> !Values.equal(of, next(name, given));
            case "lt", "<", "lessthan" -> Values.compare(of, next(name, given)) < 0;
            case "le", "<=" -> Values.compare(of, next(name, given)) <= 0;
            case "gt", ">", "greaterthan" -> Values.compare(of, next(name, given)) > 0;
            case "ge", ">=" -> Values.compare(of, next(name, given)) >= 0;
            case "in" -> Values.contains(next(name, given), of);
            case "sameas" -> {
                Object other = next(name, given);
                yield of == other || (Values.isNumber(of) || of instanceof String) && other != null && other.equals(of);
            }
            case "lower" -> isLower(Values.text(of));
            case "upper" -> isUpper(Values.text(of));
            default -> throw new TemplateException("there is no test '" + name + "'");
        };
        if (given.hasNext()) {
            throw new TemplateException("test " + name + " takes no further argument");
        }
        return holds;
    }

    private static boolean sequenceOfNothing(Undefined value) {
        throw value.refused();
    }

    private static @Nullable Object next(String name, Iterator<@Nullable Object> given) {
        if (!given.hasNext()) {
            throw new TemplateException("test " + name + " needs something to compare with");
        }
        return given.next();
    }
}
