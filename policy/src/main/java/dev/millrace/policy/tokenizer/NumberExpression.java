package dev.millrace.policy.tokenizer;

import com.hubspot.jinjava.el.ExtendedSyntaxBuilder;
import com.hubspot.jinjava.interpret.InterpretException;
import com.hubspot.jinjava.interpret.TemplateError;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import jinjava.de.odysseus.el.tree.IdentifierNode;
import jinjava.de.odysseus.el.tree.Tree;
import jinjava.de.odysseus.el.tree.TreeBuilderException;
import jinjava.de.odysseus.el.tree.impl.Builder;
import org.jspecify.annotations.Nullable;

/**
 * An expression as chat templates have them, that makes a number of named values: arithmetic, comparisons, {@code x if y else z}, the methods
 * of Python's texts and lists, and filters such as {@code length}. It has what a chat template has and nothing more: no file, no clock, no chance.
 *
 * <p>Immutable and thread-safe.
 */
public final class NumberExpression {
    private static final int MOST_CHARACTERS = 2000;

    private final String text;
    private final TemplateSandbox sandbox;
    private final Set<String> names;

    /**
     * @param known what it may name
     * @throws IllegalArgumentException if it is no expression, or names something else
     */
    public NumberExpression(String text, Set<String> known) {
        if (text.isBlank() || text.length() > MOST_CHARACTERS) {
            throw new IllegalArgumentException("must have 1 to " + MOST_CHARACTERS
                    + " characters, such as response.count('?') / 2: it has " + text.length());
        }
        this.text = text;
        this.sandbox = TemplateSandbox.strict();
        try {
            TemplateSandbox.requireParseableExpression(text);
            Tree tree = new ExtendedSyntaxBuilder(Builder.Feature.METHOD_INVOCATIONS).build("#{" + text + "}");
            Set<String> found = new TreeSet<>();
            for (IdentifierNode node : tree.getIdentifierNodes()) {
                found.add(node.getName());
            }
            found.removeIf(name ->
                    name.contains(":") || name.startsWith("___")); // the library's own, for its filters and tests
            this.names = Set.copyOf(found);
        } catch (TreeBuilderException | TemplateSandbox.RefusedByTemplateException e) {
            throw new IllegalArgumentException("is no expression: '" + text + "': " + e.getMessage(), e);
        }
        for (String name : names) {
            if (!known.contains(name)) {
                throw new IllegalArgumentException(
                        "'" + text + "' names " + name + ", and there are " + String.join(", ", new TreeSet<>(known)));
            }
        }
    }

    /**
     * The number; a truth value is 1 or 0.
     *
     * @param values that the expression may name: texts, numbers, truth values, lists and dictionaries of these
     * @throws IllegalArgumentException if it names something else, fails, or gives no finite number
     */
    public double of(Map<String, ?> values) {
        for (String name : names) {
            if (!values.containsKey(name)) {
                throw new IllegalArgumentException("'" + text + "' fails: there is no " + name);
            }
        }
        List<TemplateError> errors = new ArrayList<>();
        Object value;
        try {
            value = sandbox.value(text, values, errors);
        } catch (TemplateSandbox.RefusedByTemplateException | InterpretException e) {
            throw new IllegalArgumentException("'" + text + "' fails: " + e.getMessage(), e);
        }
        if (!errors.isEmpty()) {
            throw new IllegalArgumentException(
                    "'" + text + "' fails: " + reason(errors.get(0)),
                    errors.get(0).getException());
        }
        double number = value instanceof Boolean truth ? (truth ? 1 : 0) : number(value);
        if (!Double.isFinite(number)) {
            throw new IllegalArgumentException("'" + text + "' gives " + number + ", which is no finite number");
        }
        return number;
    }

    /** The sentence of the innermost cause, which says it plainest. */
    private static String reason(TemplateError error) {
        String said = error.getMessage();
        for (Throwable cause = error.getException(); cause != null; cause = cause.getCause()) {
            said = cause.getMessage() == null ? said : cause.getMessage();
        }
        return said;
    }

    private double number(@Nullable Object value) {
        if (value instanceof Number number) {
            return number.doubleValue();
        }
        throw new IllegalArgumentException("'" + text + "' gives "
                + (value == null ? "nothing" : "the text '" + value + "'") + " and must give a number");
    }
}
