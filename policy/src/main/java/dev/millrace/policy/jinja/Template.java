package dev.millrace.policy.jinja;

import dev.millrace.policy.jinja.Node.Statement;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A program of Jinja. Immutable and thread-safe. */
public final class Template {
    private final List<Statement> program;

    /** @throws TemplateException if it cannot be parsed, or uses an unsupported feature */
    public Template(String program) {
        this.program = new Parser(Lexer.ofTemplate(program)).template();
    }

    /**
     * A function that a program may call with positional arguments; its IllegalArgumentException fails the rendering.
     */
    public interface Function {
        @Nullable
        Object call(List<@Nullable Object> arguments);
    }

    /**
     * Renders the text.
     *
     * @param values by name: null, booleans, numbers, strings, lists and maps of these, and {@link Function}s
     * @throws TemplateException.RaisedException if the program raises an error
     * @throws TemplateException if it cannot be rendered like Jinja, or exceeds its bounds
     */
    public String render(Map<String, ?> values) {
        try {
            return new Interpreter(false).render(program, imported(values));
        } catch (StackOverflowError e) {
            throw new TemplateException("it is nested too deeply");
        }
    }

    static Map<String, @Nullable Object> imported(Map<String, ?> values) {
        Map<String, @Nullable Object> globals = new HashMap<>();
        values.forEach((name, value) -> globals.put(
                name,
                value instanceof Function function
                        ? (Values.Callable) (arguments, named) -> called(function, arguments)
                        : Values.imported(value)));
        return globals;
    }

    private static @Nullable Object called(Function function, List<@Nullable Object> arguments) {
        try {
            return function.call(arguments);
        } catch (IllegalArgumentException e) {
            throw new TemplateException(String.valueOf(e.getMessage()));
        }
    }
}
