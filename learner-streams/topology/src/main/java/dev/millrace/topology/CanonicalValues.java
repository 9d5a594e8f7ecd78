package dev.millrace.topology;

import dev.millrace.api.catalogue.Catalogue;
import java.lang.reflect.RecordComponent;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Writes configuration records as keys and values that depend only on their meaning.
 *
 * <p>A component {@code maxStaleness} is the key {@code max_staleness}, as in a configuration; the keys of a nested
 * record are joined with a dot. For a sealed interface of records, or an extension point, the key {@code kind} is added
 * to the chosen record's keys. Values:
 *
 * <pre>
 *   whole numbers and doubles   rounded to the fewest digits at which it reads back, no exponent: 256, 0.04
 *   truth values                true, false
 *   enums                       the word of the configuration: completion
 *   texts                       in quotes, with JSON's escapes
 *   lists                       [1, 2] in their order; of kinds, the keys of each: masks[0].kind, masks[0].threshold
 *   maps                        a key for each entry, sorted like all others
 *   null, an empty Optional     no key at all
 * </pre>
 *
 * A number has the same text for whole-number and double keys, and on every version of Java. NaN, infinity and minus
 * zero are refused: two such values can behave alike and look different, or the reverse.
 */
public final class CanonicalValues {
    private static final String KIND = "kind";
    private static final Pattern PLAIN = Pattern.compile("[A-Za-z0-9_.-]+");
    /** Enough for every double. */
    private static final int MOST_DIGITS = 17;

    private final SortedMap<String, String> values = new TreeMap<>();

    private CanonicalValues() {}

    /**
     * Every key below a record with its value.
     *
     * @param path the record's own key
     * @throws IllegalArgumentException naming the key of a value that has no canonical form
     */
    public static SortedMap<String, String> of(String path, Record record) {
        CanonicalValues writer = new CanonicalValues();
        writer.components(path, record);
        return writer.values;
    }

    /** The text of a number; {@code key} names it where it is refused. */
    public static String number(String key, double value) {
        if (!Double.isFinite(value)) {
            throw new IllegalArgumentException(key + " must be a finite number: " + value);
        }
        if (value == 0.0 && Double.doubleToRawLongBits(value) != 0) {
            throw new IllegalArgumentException(key + " must not be minus zero; write 0");
        }
        BigDecimal exact = new BigDecimal(value);
        for (int digits = 1; digits < MOST_DIGITS; digits++) {
            BigDecimal rounded = exact.round(new MathContext(digits));
            if (rounded.doubleValue() == value) {
                return plain(rounded);
            }
        }
        return plain(exact.round(new MathContext(MOST_DIGITS)));
    }

    private static String plain(BigDecimal value) {
        return value.signum() == 0 ? "0" : value.stripTrailingZeros().toPlainString();
    }

    /** {@code maxStaleness} is written {@code max_staleness}; a run of capitals or digits stays together. */
    public static String keyOf(String component) {
        return component.replaceAll("([a-z0-9])([A-Z])", "$1_$2").toLowerCase(Locale.ROOT);
    }

    /**
     * Returns the name of a choice in a configuration: of a kind its name, of a member of a sealed interface its class name as a key,
     * without the suffix Config.
     */
    public static String kindOf(Class<?> kind) {
        return Catalogue.current()
                .nameOf(kind)
                .orElseGet(() -> keyOf(kind.getSimpleName().replaceFirst("Config$", "")));
    }

    /** Whether a component of this type is one of several kinds: a sealed interface, or an extension point. */
    private static boolean isChoice(Class<?> type) {
        return type.isSealed() || Catalogue.current().extensionPoint(type).isPresent();
    }

    private void components(String path, Record record) {
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            String key = path + "." + keyOf(component.getName());
            Object value = read(component, record);
            if (value instanceof Record && isChoice(component.getType())) {
                values.put(key + "." + KIND, kindOf(value.getClass()));
            }
            put(key, value);
        }
    }

    private void put(String key, @Nullable Object value) {
        @Nullable Object present = value instanceof Optional<?> optional ? optional.orElse(null) : value;
        if (present instanceof Record nested) {
            components(key, nested);
        } else if (present instanceof List<?> list && !list.isEmpty() && list.get(0) instanceof Record) {
            for (int i = 0; i < list.size(); i++) {
                Record element = (Record) list.get(i);
                values.put(key + "[" + i + "]." + KIND, kindOf(element.getClass()));
                components(key + "[" + i + "]", element);
            }
        } else if (present instanceof Map<?, ?> map) {
            map.forEach((name, entry) -> put(key + "." + name(key, name), entry));
        } else if (present != null) {
            values.put(key, text(key, present));
        }
    }

    private static String name(String key, Object name) {
        if (!(name instanceof String text)) {
            throw new IllegalArgumentException(key + " must have texts for names: " + name);
        }
        return PLAIN.matcher(text).matches() ? text : quoted(text);
    }

    private static String text(String key, Object value) {
        if (value instanceof Integer || value instanceof Long) {
            return value.toString();
        }
        if (value instanceof Double number) {
            return number(key, number);
        }
        if (value instanceof Boolean flag) {
            return flag.toString();
        }
        if (value instanceof Enum<?> choice) {
            return choice.name().toLowerCase(Locale.ROOT);
        }
        if (value instanceof String text) {
            return quoted(text);
        }
        if (value instanceof List<?> list) {
            return "["
                    + String.join(
                            ", ", list.stream().map(each -> text(key, each)).toList()) + "]";
        }
        throw new IllegalArgumentException(
                key + " has a type without canonical form: " + value.getClass().getName());
    }

    /** As JSON does it, with everything but ASCII's visible characters escaped. */
    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                quoted.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        // a map's name may hold what separates a key from its value
        return quoted.append('"').toString().replace(" = ", " \\u003d ");
    }

    private static @Nullable Object read(RecordComponent component, Record record) {
        try {
            return component.getAccessor().invoke(record);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(record.getClass() + " is not a public configuration record", e);
        }
    }
}
