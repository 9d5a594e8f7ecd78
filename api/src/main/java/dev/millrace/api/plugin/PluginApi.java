package dev.millrace.api.plugin;

/** The version of everything in {@code dev.millrace.api} and of the doors that a plug-in may come through. */
public final class PluginApi {
    /**
     * Changes where what was built before would no longer work. A constant: the compiler copies the number into the class that
     * names it, so a plug-in that returns it says which version it was built against.
     */
    public static final int VERSION = 1;

    private PluginApi() {}
}
