package dev.millrace.policy.jinja;

import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** One expression of Jinja, which names nothing but what it is given. Immutable and thread-safe. */
public final class ExpressionTemplate {
    private final Node.Expression expression;
    private final Set<String> names;

    /** @throws TemplateException if it is no expression */
    public ExpressionTemplate(String text) {
        Parser parser = new Parser(Lexer.ofExpression(text));
        this.expression = parser.wholeExpression();
        this.names = Set.copyOf(parser.mentioned());
    }

    /** What it names, functions included. */
    public Set<String> names() {
        return names;
    }

    /**
     * Its value: null, a boolean, a long, a double, a string, a list or a map.
     *
     * @throws TemplateException if it fails, or asks a map for a key that it has not
     */
    public @Nullable Object value(Map<String, ?> values) {
        try {
            return new Interpreter(true).value(expression, Template.imported(values));
        } catch (StackOverflowError e) {
            throw new TemplateException("it is nested too deeply");
        }
    }
}
