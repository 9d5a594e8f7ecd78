package dev.millrace.policy.tokenizer;

import dev.millrace.policy.jinja.ExpressionTemplate;
import dev.millrace.policy.jinja.TemplateException;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * An expression in chat template syntax that computes a number from named values: arithmetic, comparisons, {@code x if
 * y else z}, the methods of Python's strings and lists, and filters such as {@code length}. Like a chat template it has
 * no access to files, clock or randomness.
 *
 * <p>Immutable and thread-safe.
 */
public final class NumberExpression {
    private static final int MOST_CHARACTERS = 2000;

    private final String text;
    private final ExpressionTemplate expression;

    /** @throws IllegalArgumentException if it is not an expression, or uses another name */
    public NumberExpression(String text, Set<String> known) {
        if (text.isBlank() || text.length() > MOST_CHARACTERS) {
            throw new IllegalArgumentException("must have 1 to " + MOST_CHARACTERS
                    + " characters, such as response.count('?') / 2: it has " + text.length());
        }
        this.text = text;
        try {
            this.expression = new ExpressionTemplate(text);
        } catch (TemplateException e) {
            throw new IllegalArgumentException("is not an expression: '" + text + "': " + e.getMessage(), e);
        }
        for (String name : expression.names()) {
            if (!known.contains(name)) {
                throw new IllegalArgumentException(
                        "'" + text + "' names " + name + ", and there are " + String.join(", ", new TreeSet<>(known)));
            }
        }
    }

    /**
     * Evaluates to a number; a boolean is 1 or 0.
     *
     * @param values that the expression may name: texts, numbers, booleans, lists and maps of these
     * @throws IllegalArgumentException if it uses another name, fails, or the result is not a finite number
     */
    public double of(Map<String, ?> values) {
        for (String name : expression.names()) {
            if (!values.containsKey(name)) {
                throw new IllegalArgumentException("'" + text + "' fails: there is no " + name);
            }
        }
        Object value;
        try {
            value = expression.value(values);
        } catch (TemplateException e) {
            throw new IllegalArgumentException("'" + text + "' fails: " + e.getMessage(), e);
        }
        double number = value instanceof Boolean truth ? (truth ? 1 : 0) : number(value);
        if (!Double.isFinite(number)) {
            throw new IllegalArgumentException("'" + text + "' gives " + number + ", which is not a finite number");
        }
        return number;
    }

    private double number(@Nullable Object value) {
        if (value instanceof Number number) {
            return number.doubleValue();
        }
        throw new IllegalArgumentException("'" + text + "' gives "
                + (value == null ? "nothing" : "the text '" + value + "'") + " and must give a number");
    }
}
