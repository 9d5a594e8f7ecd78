package dev.millrace.runtime.config;

import dev.millrace.api.catalogue.BuiltIn;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.plugin.Kind;
import java.util.List;

/** An extension point of the tests, with three kinds. */
public final class TestPoints implements BuiltIn {
    /** What it is open for. */
    public interface Gate {}

    public record Narrow(double width) implements Gate {
        public Narrow {
            if (!(width > 0)) {
                throw new IllegalArgumentException("width must be above 0: " + width);
            }
        }
    }

    public record Wide() implements Gate {}

    public record Nested(Narrow inner, Gate other) implements Gate {}

    @Override
    public String name() {
        return "test-points";
    }

    @Override
    public List<ExtensionPoint> extensionPoints() {
        return List.of(new ExtensionPoint("gate", Gate.class, "gates", "lets tests through"));
    }

    @Override
    public List<Kind> kinds() {
        return List.of(
                Kind.of(Gate.class, "slit", new Narrow(0.5), "Narrow, and called otherwise than its record.")
                        .also("chink"),
                Kind.of(Gate.class, "wide", new Wide(), "Wide."),
                Kind.of(Gate.class, "nested", new Nested(new Narrow(2), new Wide()), "Holds others."));
    }
}
