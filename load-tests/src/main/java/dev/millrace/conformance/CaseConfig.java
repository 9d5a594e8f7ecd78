package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/** Options of a case; rejects those that no family has read. {@code null} counts as absent. Not thread-safe. */
public final class CaseConfig {
    private final String path;
    private final JsonNode options;
    private final Set<String> read = new LinkedHashSet<>();
    private final Map<String, CaseConfig> sections = new HashMap<>();

    CaseConfig(String path, JsonNode options) {
        if (!options.isObject()) {
            throw new MalformedCaseException("config" + path + " must be an object: " + options);
        }
        this.path = path;
        this.options = options;
    }

    static CaseConfig empty() {
        return new CaseConfig("", JsonNodeFactory.instance.objectNode());
    }

    /** True if the option is present and not null; counts as read only if absent. */
    public boolean has(String name) {
        boolean given = options.hasNonNull(name);
        if (!given) {
            read.add(name);
        }
        return given;
    }

    /** True if the option is present, even as null. */
    public boolean mentions(String name) {
        return options.has(name);
    }

    /** Marks options as known but unused by this case. */
    public void ignore(String... names) {
        read.addAll(List.of(names));
    }

    public JsonNode raw(String name) {
        read.add(name);
        return options.hasNonNull(name) ? options.get(name) : MissingNode.getInstance();
    }

    public String text(String name) {
        return given(name, JsonNode::isTextual, "a string").textValue();
    }

    public String text(String name, String ifNotGiven) {
        return has(name) ? text(name) : ifNotGiven;
    }

    public List<String> texts(String name) {
        JsonNode value = given(name);
        List<String> texts = new ArrayList<>();
        for (JsonNode element : value) {
            if (!element.isTextual()) {
                throw wrong(name, "a list of strings", value);
            }
            texts.add(element.textValue());
        }
        return texts;
    }

    public double number(String name) {
        return JsonNumbers.read(given(name, JsonNumbers::isNumber, "a number"), name);
    }

    public double number(String name, double ifNotGiven) {
        return has(name) ? number(name) : ifNotGiven;
    }

    public double[] numbers(String name) {
        JsonNode value = given(name, JsonNode::isArray, "a list of numbers");
        double[] numbers = new double[value.size()];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = JsonNumbers.read(value.get(i), name);
        }
        return numbers;
    }

    public int integer(String name) {
        return given(name, JsonNode::isIntegralNumber, "an integer").intValue();
    }

    public int integer(String name, int ifNotGiven) {
        return has(name) ? integer(name) : ifNotGiven;
    }

    public boolean flag(String name) {
        return given(name, JsonNode::isBoolean, "true or false").booleanValue();
    }

    public boolean flag(String name, boolean ifNotGiven) {
        return has(name) ? flag(name) : ifNotGiven;
    }

    public CaseConfig section(String name) {
        return sections.computeIfAbsent(name, n -> new CaseConfig(path + "." + n, given(n)));
    }

    /** Rejects unread options, in sections too. */
    void requireAllRead() {
        for (Map.Entry<String, JsonNode> option : options.properties()) {
            if (!read.contains(option.getKey())) {
                throw new MalformedCaseException("unknown option config" + path + "." + option.getKey() + " = "
                        + option.getValue() + "; known here: " + String.join(", ", read));
            }
        }
        sections.values().forEach(CaseConfig::requireAllRead);
    }

    private JsonNode given(String name) {
        JsonNode value = raw(name);
        if (value.isMissingNode()) {
            throw new MalformedCaseException("config" + path + "." + name + " is required here and not given");
        }
        return value;
    }

    private JsonNode given(String name, Predicate<JsonNode> fits, String wanted) {
        JsonNode value = given(name);
        if (!fits.test(value)) {
            throw wrong(name, wanted, value);
        }
        return value;
    }

    private IllegalArgumentException wrong(String name, String wanted, JsonNode value) {
        return new IllegalArgumentException("config" + path + "." + name + " must be " + wanted + ": " + value);
    }
}
