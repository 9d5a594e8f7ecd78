package dev.millrace.docs.reference;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.plugin.PluginApi;
import java.util.stream.Collectors;

/** Every extension point with Millrace's own kinds. */
final class PluginsPage {
    private static final String BEFORE = """
            # Plug-ins

            An *extension point* is an interface; a *kind* is a record that implements it, has a name, and is its own configuration. A *plug-in* is a jar
            with kinds. [Write one](../how-to/plugin.md).

            ```
            ./millrace plugins                                   # every extension point, every kind, every plug-in; --json for programs
            ./millrace plugins --plugin-path our-plugin.jar
            ./millrace config --reference --plugin-path our-plugin.jar
            ```

            ## Where plug-ins are looked for

            1. `plugins/` next to the launcher `./millrace`; never the working directory.
            2. `--plugin-path PATH` of any command, repeatable.
            3. The class path and the system property `millrace.plugin.path` of a program that [embeds](../how-to/embed.md) Millrace, or
               `Plugins.install(List.of(jar))` before it resolves a configuration.

            A path is a jar, a folder with a jar, or a folder of jars. Each plug-in has its own class loader below Millrace's.

            **A plug-in runs in Millrace's process with all of its rights**: files, network, credentials.

            Every process of a run needs the plug-ins of its configuration, auditing commands included. Only the learner's process needs observers.

            ## What is refused

            | what | error |
            | --- | --- |
            | a jar built against another version of the interface; this is version %d | the plug-in PATH was built against version ... |
            | a jar built against classes that this release lacks | the plug-in PATH was built against another release of Millrace ... |
            | two plug-ins of one name | two plug-ins are called NAME: PATH and PATH |
            | two kinds of one name at one extension point | two kinds of POINT are called NAME |
            | a file that is no jar, or a jar without kinds | the plug-in PATH cannot be read, offers nothing |
            | a kind whose record no configuration can hold | the plug-in PATH offers NAME, which cannot be configured |
            | an unknown name in a configuration | KEY must be one of ..., or a kind of a plug-in |

            Each ends the command with exit code 2 before anything starts.

            ## Configuration

            ```
            task: {kind: sort, digits: 3}      # a kind with settings
            reward: verified                   # a kind with its defaults
            algorithm:
              masks: [m2po, {kind: sequence_mask}]   # a list of kinds
            ```

            `--set task=sort --set task.digits=3` is the same; `--set algorithm.masks[0].threshold=0.1` (or `masks.0.threshold`) changes one element of a list.
            The name of a kind is part of the run's fingerprint, its class name is not.

            ## Extension points

            """;

    private PluginsPage() {}

    static String text() {
        Catalogue catalogue = Catalogue.current();
        StringBuilder page = new StringBuilder(BEFORE.formatted(PluginApi.VERSION))
                .append(Tables.head("extension point", "key", "interface", "purpose"));
        for (ExtensionPoint point : catalogue.extensionPoints()) {
            page.append(Tables.row(
                    "[" + point.name() + "](" + kinds(point) + ")",
                    Tables.code(point.key()),
                    Tables.code(point.type().getName()),
                    point.meaning()));
        }
        for (ExtensionPoint point : catalogue.extensionPoints()) {
            if (MethodsPage.keys().contains(point.key())) {
                continue;
            }
            page.append("\n### ").append(point.name()).append("\n\n");
            if (catalogue.kinds(point.type()).isEmpty()) {
                page.append("None is built in.\n");
                continue;
            }
            page.append(Tables.head("kind", "what it is"));
            for (Kind kind : catalogue.kinds(point.type())) {
                page.append(Tables.row(
                        Tables.code(kind.name())
                                + kind.aliases().stream()
                                        .map(name -> ", " + Tables.code(name))
                                        .collect(Collectors.joining()),
                        kind.meaning()));
            }
        }
        return page.toString();
    }

    private static String kinds(ExtensionPoint point) {
        return MethodsPage.keys().contains(point.key())
                ? "methods.md#" + point.key().replace(".", "")
                : "#" + point.name();
    }
}
