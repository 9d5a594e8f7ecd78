package dev.millrace.api.catalogue;

import dev.millrace.api.plugin.Kind;
import java.util.List;

/** Declares an extension point for the tests, with one kind. */
public final class TestPoint implements BuiltIn {
    /** Kind of the test's extension point. */
    public interface Bell {}

    public record Chime(int times) implements Bell {}

    @Override
    public String name() {
        return "bells";
    }

    @Override
    public List<ExtensionPoint> extensionPoints() {
        return List.of(new ExtensionPoint("bell", Bell.class, "bells", "rings"));
    }

    @Override
    public List<Kind> kinds() {
        return List.of(
                Kind.of(Bell.class, "chime", new Chime(3), "Rings some times.").also("ding"));
    }
}
