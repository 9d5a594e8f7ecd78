package dev.millrace.cli.config;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.catalogue.LoadedPlugin;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.plugin.Meaning;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.runtime.config.Choice;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.RecordComponent;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace config}: prints the effective configuration, or the meaning of every key. */
@Command(
        name = "config",
        description = "Prints the resolved configuration as YAML, or the meaning of every key.",
        footer = {"", "millrace config > my.yaml; edit it; millrace train --config my.yaml"})
public final class ConfigCommand extends ScreenCommand {
    static final String REFERENCE = "/dev/millrace/cli/config/configuration.md";

    @Mixin
    private ConfigOptions options;

    @Option(names = "--reference", description = "Print every key with default and meaning, plug-ins included.")
    private boolean reference;

    @Override
    public Integer call() throws IOException {
        if (reference) {
            try (InputStream text = ConfigCommand.class.getResourceAsStream(REFERENCE)) {
                out().print(new String(text.readAllBytes(), StandardCharsets.UTF_8));
                out().print(plugins(Catalogue.current()));
            }
        } else {
            out().print(ConfigTree.write(
                    ConfigBinder.unbind(options.over(ConfigTree.empty()).resolve())));
        }
        out().flush();
        return 0;
    }

    /** Settings of plug-in kinds in the reference's format. */
    private static String plugins(Catalogue catalogue) {
        StringBuilder text = new StringBuilder();
        for (LoadedPlugin plugin : catalogue.plugins()) {
            if (plugin.origin() != LoadedPlugin.Origin.BUILT_IN) {
                plugin.kinds().forEach(kind -> section(catalogue, plugin, kind, text));
            }
        }
        return text.toString();
    }

    private static void section(Catalogue catalogue, LoadedPlugin plugin, Kind kind, StringBuilder text) {
        String key =
                catalogue.extensionPoint(kind.extensionPoint()).orElseThrow().key();
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
        text.append("\n\n");
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
            text.append("- `")
                    .append(choice ? key + "." + Choice.KIND : key)
                    .append("` = `")
                    .append(choice ? Choice.kindOf(value) : shown(value))
                    .append("`: ")
                    .append(Optional.ofNullable(component.getAnnotation(Meaning.class))
                            .map(Meaning::value)
                            .orElse("not documented by the plug-in"))
                    .append('\n');
        }
    }

    private static String shown(Object value) {
        return value instanceof Enum<?> choice ? choice.name().toLowerCase(Locale.ROOT) : String.valueOf(value);
    }

    private static Object value(RecordComponent component, Record record) {
        try {
            return component.getAccessor().invoke(record);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(record.getClass() + " is not a public configuration record", e);
        }
    }
}
