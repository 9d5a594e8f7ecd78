package dev.millrace.policy.jinja;

import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A Jinja expression over given names. Immutable and thread-safe. */
public final class ExpressionTemplate {
    private final Node.Expression expression;
    private final Set<String> names;

    /** @throws TemplateException if it is not an expression */
    public ExpressionTemplate(String text) {
        Parser parser = new Parser(Lexer.ofExpression(text));
        this.expression = parser.wholeExpression();
        this.names = Set.copyOf(parser.mentioned());
    }

    /** Returns the names that it uses, including functions. */
    public Set<String> names() {
        return names;
    }

    /**
     * Its value: null, a boolean, a long, a double, a string, a list or a map.
     *
     * @throws TemplateException if it fails, or reads a missing key of a map
     */
    public @Nullable Object value(Map<String, ?> values) {
        try {
            return new Interpreter(true).value(expression, Template.imported(values));
        } catch (StackOverflowError e) {
            throw new TemplateException("it is nested too deeply");
        }
    }
}
