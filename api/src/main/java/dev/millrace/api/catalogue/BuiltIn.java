package dev.millrace.api.catalogue;

import dev.millrace.api.plugin.Plugin;
import dev.millrace.api.plugin.PluginApi;
import java.util.List;

/** A part of Millrace that opens doors and brings its own kinds through doors, by the same service as plug-ins. It may open doors alone. */
public interface BuiltIn extends Plugin {

    /** The doors that it opens. */
    List<Door> doors();

    @Override
    default int apiVersion() {
        return PluginApi.VERSION;
    }
}
