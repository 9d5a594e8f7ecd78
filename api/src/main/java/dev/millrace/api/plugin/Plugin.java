package dev.millrace.api.plugin;

import java.util.List;

/**
 * The plug-in of a jar. Found by {@link java.util.ServiceLoader}: a jar names its implementations in
 * {@code META-INF/services/dev.millrace.api.plugin.Plugin}, each public, with a public constructor without parameters.
 *
 * <pre>{@code
 * public final class OurPlugin implements Plugin {
 *     public String name() { return "our-lab"; }
 *     public int apiVersion() { return PluginApi.VERSION; }
 *     public List<Kind> kinds() {
 *         return List.of(Kind.of(MaskStage.class, "first_tokens", new FirstTokens(4), "Masks the first tokens of a response."));
 *     }
 * }
 * }</pre>
 *
 * <p>A plug-in runs in Millrace's process with all its rights. Called once, by one thread, before anything is
 * configured.
 */
public interface Plugin {

    /** Returns its name, unique in the process: lower-case letters, digits, {@code -} and {@code _}. */
    String name();

    /**
     * Returns the API version that it was built against: write {@code return PluginApi.VERSION;}, which the compiler
     * inlines.
     */
    int apiVersion();

    /** Returns its kinds, at least one. */
    List<Kind> kinds();
}
