package dev.millrace.cli.config;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.catalogue.LoadedPlugin;
import dev.millrace.api.catalogue.LoadedPlugin.Origin;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.plugin.PluginApi;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.runtime.config.ConfigBinder;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace plugins}: lists extension points, their kinds and origins. */
@Command(
        name = "plugins",
        description = "Lists every extension point with its kinds, built in and from plug-ins.",
        footer = {"", "millrace plugins --plugin-path our-plugin.jar"})
public final class PluginsCommand extends ScreenCommand {
    @Option(names = "--json", description = "Print JSON: extension points, kinds with their settings, plug-ins.")
    private boolean json;

    @Override
    public Integer call() {
        Catalogue catalogue = Catalogue.current();
        out().print(json ? json(catalogue).toPrettyString() + "\n" : text(catalogue));
        out().flush();
        return 0;
    }

    private static String text(Catalogue catalogue) {
        StringBuilder text = new StringBuilder();
        for (ExtensionPoint point : catalogue.extensionPoints()) {
            text.append(String.format(Locale.ROOT, "%s  (%s)  %s%n", point.name(), point.key(), point.meaning()));
            List<Kind> kinds = catalogue.kinds(point.type());
            int width =
                    kinds.stream().mapToInt(kind -> kind.name().length()).max().orElse(0);
            for (LoadedPlugin plugin : catalogue.plugins()) {
                for (Kind kind : plugin.kinds()) {
                    if (kind.extensionPoint() == point.type()) {
                        text.append(String.format(
                                Locale.ROOT,
                                "    %-" + width + "s  %s%s%s%n",
                                kind.name(),
                                kind.meaning(),
                                kind.aliases().isEmpty() ? "" : " Also " + String.join(", ", kind.aliases()) + ".",
                                plugin.origin() == Origin.BUILT_IN ? "" : "  [" + plugin.name() + "]"));
                    }
                }
            }
        }
        List<LoadedPlugin> others = others(catalogue);
        text.append(String.format("%n%s%n", others.isEmpty() ? "no plug-ins" : "plug-ins"));
        for (LoadedPlugin plugin : others) {
            text.append(String.format(
                    "    %s  %s%s  %s%n",
                    plugin.name(),
                    plugin.version().isEmpty() ? "" : plugin.version() + "  ",
                    plugin.place(),
                    plugin.kinds().stream().map(Kind::name).collect(Collectors.joining(", "))));
        }
        return text.toString();
    }

    private static List<LoadedPlugin> others(Catalogue catalogue) {
        return catalogue.plugins().stream()
                .filter(plugin -> plugin.origin() != Origin.BUILT_IN)
                .toList();
    }

    private static ObjectNode json(Catalogue catalogue) {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        tree.put("api_version", PluginApi.VERSION);
        ArrayNode points = tree.putArray("doors");
        for (ExtensionPoint point : catalogue.extensionPoints()) {
            ObjectNode one = points.addObject();
            one.put("name", point.name());
            one.put("key", point.key());
            one.put("interface", point.type().getName());
            one.put("meaning", point.meaning());
            ArrayNode kinds = one.putArray("kinds");
            for (LoadedPlugin plugin : catalogue.plugins()) {
                for (Kind kind : plugin.kinds()) {
                    if (kind.extensionPoint() == point.type()) {
                        ObjectNode node = kinds.addObject();
                        node.put("name", kind.name());
                        kind.aliases().forEach(node.withArray("aliases")::add);
                        node.put("meaning", kind.meaning());
                        node.put("plugin", plugin.name());
                        node.set("settings", ConfigBinder.unbind(kind.defaults()));
                    }
                }
            }
        }
        ArrayNode plugins = tree.putArray("plugins");
        for (LoadedPlugin plugin : catalogue.plugins()) {
            ObjectNode one = plugins.addObject();
            one.put("name", plugin.name());
            one.put("origin", plugin.origin().name().toLowerCase(Locale.ROOT));
            one.put("place", plugin.place());
            one.put("version", plugin.version());
        }
        return tree;
    }
}
