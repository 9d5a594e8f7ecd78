package dev.millrace.api.plugin;

/** Version of {@code dev.millrace.api} and of the extension points. */
public final class PluginApi {
    /**
     * Changes with incompatible changes. A constant: the compiler inlines it, so a plug-in that returns it reports the
     * version it was built against.
     */
    public static final int VERSION = 1;

    private PluginApi() {}
}
