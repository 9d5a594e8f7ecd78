package dev.millrace.cli.config;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.catalogue.LoadedPlugin;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.plugin.Meaning;
import dev.millrace.runtime.config.Choice;
import dev.millrace.runtime.config.ConfigBinder;
import java.lang.reflect.RecordComponent;
import java.util.Locale;
import java.util.Optional;

/** The settings of what plug-ins bring, as the reference shows those of built-in kinds. */
final class PluginReference {
    private static final String HEAD = "\n\n| key | default | meaning |\n| --- | --- | --- |\n";

    private PluginReference() {}

    static String text(Catalogue catalogue) {
        StringBuilder text = new StringBuilder();
        for (LoadedPlugin plugin : catalogue.plugins()) {
            if (plugin.origin() != LoadedPlugin.Origin.BUILT_IN) {
                plugin.kinds().forEach(kind -> section(catalogue, plugin, kind, text));
            }
        }
        return text.toString();
    }

    private static void section(Catalogue catalogue, LoadedPlugin plugin, Kind kind, StringBuilder text) {
        String key = catalogue.door(kind.door()).orElseThrow().key();
        text.append("\n## ")
                .append(key)
                .append(": ")
                .append(kind.name())
                .append("\n\n")
                .append(kind.meaning())
                .append(" From the plug-in ")
                .append(plugin.name())
                .append('.');
        if (kind.type().getRecordComponents().length == 0) {
            text.append(" It has no settings.\n");
            return;
        }
        text.append(HEAD);
        rows("", kind.defaults(), text);
    }

    private static void rows(String path, Record record, StringBuilder text) {
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            String key = (path.isEmpty() ? "" : path + ".") + ConfigBinder.keyOf(component.getName());
            Object value = value(component, record);
            boolean choice = Choice.of(component.getType()).isPresent();
            if (value instanceof Record nested && !choice) {
                rows(key, nested, text);
                continue;
            }
            text.append("| `")
                    .append(choice ? key + "." + Choice.KIND : key)
                    .append("` | `")
                    .append(choice ? Choice.kindOf(value) : shown(value))
                    .append("` | ")
                    .append(Optional.ofNullable(component.getAnnotation(Meaning.class))
                            .map(meaning -> meaning.value().replace("|", "\\|"))
                            .orElse("the plug-in does not say"))
                    .append(" |\n");
        }
    }

    private static String shown(Object value) {
        return value instanceof Enum<?> choice ? choice.name().toLowerCase(Locale.ROOT) : String.valueOf(value);
    }

    private static Object value(RecordComponent component, Record record) {
        try {
            return component.getAccessor().invoke(record);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(record.getClass() + " is no public configuration record", e);
        }
    }
}
