package dev.millrace.policy.jinja;

import dev.millrace.policy.jinja.Lexer.Token;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** One expression of Jinja, which names nothing but what it is given. Immutable and thread-safe. */
public final class ExpressionTemplate {
    private final Node.Expression expression;
    private final Set<String> names;

    /** @throws TemplateException if it is no expression */
    public ExpressionTemplate(String text) {
        List<Token> tokens = Lexer.ofExpression(text);
        this.expression = new Parser(tokens).wholeExpression();
        Set<String> found = new TreeSet<>();
        java.util.regex.Matcher name =
                java.util.regex.Pattern.compile("Name\\[name=(\\w+), line=").matcher(expression.toString());
        while (name.find()) {
            found.add(name.group(1));
        }
        this.names = Set.copyOf(found);
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
