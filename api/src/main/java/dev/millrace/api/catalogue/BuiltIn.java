package dev.millrace.api.catalogue;

import dev.millrace.api.plugin.Plugin;
import dev.millrace.api.plugin.PluginApi;
import java.util.List;

/**
 * A part of Millrace that declares extension points and its own kinds of them, loaded by the same service as plug-ins.
 * Only built-ins may declare extension points.
 */
public interface BuiltIn extends Plugin {

    /** Returns the extension points that it declares. */
    List<ExtensionPoint> extensionPoints();

    @Override
    default int apiVersion() {
        return PluginApi.VERSION;
    }
}
