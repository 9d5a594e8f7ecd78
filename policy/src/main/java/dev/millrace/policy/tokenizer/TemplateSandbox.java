package dev.millrace.policy.tokenizer;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.hubspot.jinjava.Jinjava;
import com.hubspot.jinjava.JinjavaConfig;
import com.hubspot.jinjava.LegacyOverrides;
import com.hubspot.jinjava.el.JinjavaProcessors;
import com.hubspot.jinjava.interpret.Context;
import com.hubspot.jinjava.interpret.Context.Library;
import com.hubspot.jinjava.interpret.JinjavaInterpreter;
import com.hubspot.jinjava.interpret.RenderResult;
import com.hubspot.jinjava.interpret.TemplateError;
import com.hubspot.jinjava.lib.filter.Filter;
import com.hubspot.jinjava.lib.fn.ELFunctionDefinition;
import com.hubspot.jinjava.lib.tag.Tag;
import com.hubspot.jinjava.random.RandomNumberGeneratorStrategy;
import java.io.IOException;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * What a template may do: what chat templates need, and nothing that reads a file or a clock, draws a number, or reaches an object of this
 * process. A template that needs more is refused where it asks.
 */
final class TemplateSandbox {
    static final int MOST_CHARACTERS = 1_000_000;
    private static final int MOST_STEPS = 100_000;
    /** Of a list; turns of a loop without a step in it are not counted, so it bounds these. */
    static final int MOST_ELEMENTS = 1000;

    private static final int MOST_NESTED = 20;
    /** Of brackets and of blocks: the library's parser takes a few calls for each, and of brackets more time than in proportion. */
    static final int DEEPEST = 64;

    private static final Set<String> BLOCKS = Set.of("if", "for", "macro", "call");
    private static final Set<String> TAGS = Set.of(
            "if",
            "elif",
            "else",
            "for",
            "set",
            "macro",
            "call",
            "raw",
            "do",
            "break",
            "continue",
            "endif",
            "endfor",
            "endset",
            "endmacro",
            "endcall",
            "endraw");
    private static final Set<String> FILTERS = Set.of(
            "trim",
            "length",
            "count",
            "upper",
            "lower",
            "capitalize",
            "title",
            "tojson",
            "replace",
            "join",
            "first",
            "last",
            "list",
            "default",
            "d",
            "reverse",
            "map",
            "select",
            "selectattr",
            "reject",
            "rejectattr",
            "string",
            "int",
            "float",
            "items",
            "dictsort",
            "unique",
            "safe",
            "sort",
            "abs");
    private static final Set<String> FUNCTIONS = Set.of(":range", ":namespace", ":dict");
    private static final Map<Library, Set<String>> DISABLED = disabled();

    /** Of the rendering that this thread is at, where the program cannot reach it; the library's functions are static. */
    private static final ThreadLocal<@Nullable Rendering> RENDERING = new ThreadLocal<>();

    private final Optional<LocalDate> date;
    private final Jinjava jinjava;

    TemplateSandbox(Optional<LocalDate> date) {
        this(date, false);
    }

    private TemplateSandbox(Optional<LocalDate> date, boolean strict) {
        this.date = date;
        this.jinjava = made(date.isPresent(), strict);
    }

    /** One without a date that refuses names and keys which nothing has. */
    static TemplateSandbox strict() {
        return new TemplateSandbox(Optional.empty(), true);
    }

    private static Map<Library, Set<String>> disabled() {
        Context all = new Jinjava().getGlobalContext();
        Map<Library, Set<String>> disabled = new EnumMap<>(Library.class);
        disabled.put(Library.TAG, without(all.getAllTags(), Tag::getName, TAGS));
        disabled.put(Library.FILTER, without(all.getAllFilters(), Filter::getName, FILTERS));
        disabled.put(Library.FUNCTION, without(all.getAllFunctions(), ELFunctionDefinition::getName, FUNCTIONS));
        return disabled;
    }

    private static <T> Set<String> without(Collection<T> all, Function<T, String> name, Set<String> kept) {
        return all.stream().map(name).filter(each -> !kept.contains(each)).collect(Collectors.toUnmodifiableSet());
    }

    /**
     * Refuses a program that is nested more deeply than can be parsed.
     *
     * @throws RefusedByTemplateException if it is
     */
    static void requireParseable(String program) {
        int blocks = 0;
        for (int at = program.indexOf('{'); at >= 0; at = program.indexOf('{', at)) {
            if (program.startsWith("{#", at)) {
                int end = program.indexOf("#}", at);
                at = end < 0 ? program.length() : end;
            } else if (program.startsWith("{%", at) || program.startsWith("{{", at)) {
                String word = program.charAt(at + 1) == '%' ? word(program, at + 2) : "";
                blocks += BLOCKS.contains(word) ? 1 : word.startsWith("end") ? -1 : 0;
                if (blocks > DEEPEST) {
                    throw tooDeep("blocks", at);
                }
                at = endOfCode(program, at + 2);
            } else {
                at++;
            }
        }
    }

    /**
     * Refuses an expression that is nested more deeply than can be parsed.
     *
     * @throws RefusedByTemplateException if it is
     */
    static void requireParseableExpression(String expression) {
        for (int at = 0; at < expression.length(); ) {
            at = Math.max(at + 1, endOfCode(expression, at));
        }
    }

    private static String word(String program, int from) {
        int begin = from;
        while (begin < program.length() && "-+ \t\r\n".indexOf(program.charAt(begin)) >= 0) {
            begin++;
        }
        int end = begin;
        while (end < program.length() && Character.isLetter(program.charAt(end))) {
            end++;
        }
        return program.substring(begin, end);
    }

    /** Where code ends that begins here: behind its brackets and texts. */
    private static int endOfCode(String program, int from) {
        int brackets = 0;
        for (int at = from; at < program.length(); at++) {
            char c = program.charAt(at);
            if (c == '"' || c == '\'') {
                for (at++; at < program.length() && program.charAt(at) != c; at++) {
                    at += program.charAt(at) == '\\' ? 1 : 0;
                }
            } else if (c == '(' || c == '[' || c == '{') {
                brackets++;
                if (brackets > DEEPEST) {
                    throw tooDeep("brackets", at);
                }
            } else if (program.startsWith("%}", at) || brackets == 0 && program.startsWith("}}", at)) {
                return at + 2;
            } else if (c == ')' || c == ']' || c == '}') {
                brackets = Math.max(0, brackets - 1);
            }
        }
        return program.length();
    }

    private static RefusedByTemplateException tooDeep(String what, int at) {
        return new RefusedByTemplateException(
                "its " + what + " are nested more than " + DEEPEST + " deep at character " + (at + 1));
    }

    /**
     * Renders.
     *
     * @param context what the program sees, by name
     */
    RenderResult render(String program, Map<String, Object> context) {
        Map<String, Object> seen = new HashMap<>(context);
        if (date.isPresent()) {
            seen.put("strftime_now", true); // so that it is defined
        }
        RENDERING.set(new Rendering(date, new AtomicInteger()));
        try {
            return jinjava.renderForResult(program, seen);
        } finally {
            RENDERING.remove();
        }
    }

    /**
     * What an expression gives, which may be null.
     *
     * @param values that it may name, and no others
     * @param errors is given what went wrong; the value counts for nothing then
     */
    @Nullable
    Object value(String expression, Map<String, ?> values, List<TemplateError> errors) {
        JinjavaInterpreter interpreter = jinjava.newInterpreter();
        interpreter.getContext().putAll(values);
        RENDERING.set(new Rendering(date, new AtomicInteger()));
        try (var current = JinjavaInterpreter.closeablePushCurrent(interpreter).get()) {
            Object value = current.value().resolveELExpression(expression, 1);
            errors.addAll(interpreter.getErrorsCopy());
            return value;
        } finally {
            RENDERING.remove();
        }
    }

    private static Jinjava made(boolean dated, boolean strict) {
        JinjavaConfig config = JinjavaConfig.newBuilder()
                .withTrimBlocks(true)
                .withLstripBlocks(true)
                .withKeepTrailingNewline(true)
                .withNestedInterpretationEnabled(false) // a message may say {{ }} and is text
                .withMaxOutputSize(MOST_CHARACTERS)
                .withMaxStringLength(MOST_CHARACTERS)
                .withMaxListSize(MOST_ELEMENTS)
                .withMaxMapSize(MOST_ELEMENTS)
                .withRangeLimit(MOST_ELEMENTS)
                .withFailOnUnknownTokens(strict)
                .withMaxRenderDepth(MOST_NESTED)
                .withEnableRecursiveMacroCalls(false)
                .withMaxMacroRecursionDepth(MOST_NESTED)
                .withRandomNumberGeneratorStrategy(RandomNumberGeneratorStrategy.CONSTANT_ZERO)
                .withDateTimeProvider(() -> 0)
                .withDisabled(DISABLED)
                .withElResolver(PythonMethods.resolver(strict))
                .withProcessors(JinjavaProcessors.newBuilder()
                        .withNodePreProcessor((node, interpreter) -> {
                            if (now().steps().incrementAndGet() > MOST_STEPS) {
                                throw new RefusedByTemplateException("it takes more than " + MOST_STEPS + " steps");
                            }
                        })
                        .build())
                .withLegacyOverrides(LegacyOverrides.newBuilder()
                        .withIterateOverMapKeys(true)
                        .withUsePyishObjectMapper(true)
                        .withParseWhitespaceControlStrictly(true)
                        .withUseTrimmingForNotesAndExpressions(true)
                        .withKeepNullableLoopValues(true)
                        .withUseNaturalOperatorPrecedence(true)
                        .withHandleBackslashInQuotesOnly(true)
                        .withAllowAdjacentTextNodes(true)
                        .build())
                .build();
        Jinjava jinjava = new Jinjava(config);
        jinjava.setResourceLocator((name, encoding, interpreter) -> {
            throw new IOException("a chat template is one file and cannot read " + name);
        });
        Context global = jinjava.getGlobalContext();
        global.registerFilter(new ToJson());
        global.registerFunction(
                new ELFunctionDefinition("", "range", TemplateSandbox.class, "range", Object.class, Object[].class));
        global.registerFunction(
                new ELFunctionDefinition("", "raise_exception", TemplateSandbox.class, "refuse", String.class));
        if (dated) {
            global.registerFunction(
                    new ELFunctionDefinition("", "strftime_now", TemplateSandbox.class, "today", String.class));
        }
        return jinjava;
    }

    /** {@code raise_exception} of a template. */
    @SuppressWarnings("DoNotCallSuggester") // the library calls it
    public static Object refuse(String why) {
        throw new RefusedByTemplateException(why);
    }

    /** {@code range} of a template; the library's own ends at its limit without a word. */
    public static List<Integer> range(Object first, Object... more) {
        long[] bounds = LongStream.concat(
                        LongStream.of(number(first)), Arrays.stream(more).mapToLong(TemplateSandbox::number))
                .toArray();
        long start = bounds.length > 1 ? bounds[0] : 0;
        long stop = bounds.length > 1 ? bounds[1] : bounds[0];
        long step = bounds.length > 2 ? bounds[2] : 1;
        if (bounds.length > 3 || step == 0) {
            throw new RefusedByTemplateException("range takes a start, an end and a step that is not 0");
        }
        List<Integer> numbers = new ArrayList<>();
        for (long each = start; step > 0 ? each < stop : each > stop; each += step) {
            if (numbers.size() == MOST_ELEMENTS) {
                throw new RefusedByTemplateException("range has more than " + MOST_ELEMENTS + " numbers");
            }
            numbers.add(Math.toIntExact(each));
        }
        return numbers;
    }

    private static long number(Object value) {
        if (value instanceof Number number
                && number.longValue() == number.doubleValue()
                && Math.abs(number.doubleValue()) <= Integer.MAX_VALUE) {
            return number.longValue();
        }
        throw new RefusedByTemplateException("range takes whole numbers of 32 bits: " + value);
    }

    /** {@code strftime_now} of a template. */
    public static String today(String format) {
        return Today.as(format, now().date().orElseThrow(() -> new RefusedByTemplateException("it has no date")));
    }

    private static Rendering now() {
        return Objects.requireNonNull(RENDERING.get(), "nothing is rendered on this thread");
    }

    /**
     * One.
     *
     * @param steps taken so far
     */
    private record Rendering(Optional<LocalDate> date, AtomicInteger steps) {}

    /** A date as {@code strftime} formats it. */
    private static final class Today {
        private static final Map<Character, String> FORMATS = Map.of(
                'd', "dd", 'b', "MMM", 'B', "MMMM", 'Y', "yyyy", 'm', "MM", 'y', "yy", 'A', "EEEE", 'a', "EEE", 'j',
                "DDD");

        private Today() {}

        static String as(String format, LocalDate date) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < format.length(); i++) {
                if (format.charAt(i) != '%') {
                    text.append(format.charAt(i));
                    continue;
                }
                String pattern = ++i < format.length() ? FORMATS.get(format.charAt(i)) : null;
                if (pattern == null) {
                    throw new RefusedByTemplateException("it asks for the time as '" + format
                            + "', and of dates only %d %b %B %Y %m %y %A %a %j are known");
                }
                text.append(date.format(DateTimeFormatter.ofPattern(pattern, Locale.ENGLISH)));
            }
            return text.toString();
        }
    }

    /** JSON as Python writes it. */
    private static final class ToJson implements Filter {
        private static final ObjectWriter JSON = new ObjectMapper().writer(new MinimalPrettyPrinter() {
            private static final long serialVersionUID = 1;

            @Override
            public void writeObjectFieldValueSeparator(JsonGenerator out) throws IOException {
                out.writeRaw(": ");
            }

            @Override
            public void writeObjectEntrySeparator(JsonGenerator out) throws IOException {
                out.writeRaw(", ");
            }

            @Override
            public void writeArrayValueSeparator(JsonGenerator out) throws IOException {
                out.writeRaw(", ");
            }
        });

        @Override
        public String getName() {
            return "tojson";
        }

        @Override
        public Object filter(@Nullable Object value, JinjavaInterpreter interpreter, String... arguments) {
            try {
                return JSON.writeValueAsString(value);
            } catch (JsonProcessingException e) {
                throw new RefusedByTemplateException("it cannot be JSON: " + e.getOriginalMessage());
            }
        }
    }

    /** The template says no, or is told so. */
    static final class RefusedByTemplateException extends RuntimeException {
        private static final long serialVersionUID = 1;

        RefusedByTemplateException(String why) {
            super(why);
        }
    }
}
