package dev.millrace.docs.reference;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.catalogue.Door;
import dev.millrace.api.plugin.Kind;
import dev.millrace.api.plugin.PluginApi;
import java.util.stream.Collectors;

/** Every door with the kinds that Millrace itself brings through it. */
final class PluginsPage {
    private static final String BEFORE = """
            # Plug-ins

            A *door* is an interface; a *kind* is a record that implements it, has a name of its own, and is its own configuration. A *plug-in* is a
            jar that brings kinds. Millrace's own kinds come through the same doors. [Write one](../how-to/plugin.md).

            ```
            ./millrace plugins                                   # every door, every kind, every plug-in; --json for programs
            ./millrace plugins --plugin-path our-plugin.jar
            ./millrace config --reference --plugin-path our-plugin.jar
            ```

            ## Where plug-ins are looked for

            1. In `plugins/` beside the launcher `./millrace`. Not in the working directory: whoever can write there could run code.
            2. At `--plugin-path PATH` of any command, as often as you like.
            3. On the class path, and in the system property `millrace.plugin.path`, of a program that [embeds](../how-to/embed.md) Millrace; or
               where it says: `Plugins.install(List.of(jar))`, before it resolves a configuration.

            A path is a jar, or a folder with a jar, or a folder of jars, for each plug-in. Each has a class loader of its own, whose parent is
            Millrace's: it sees Millrace's classes and not those of another plug-in. What else it needs is in its jar, or beside it in its folder.

            **A plug-in runs in Millrace's process with all of its rights**: files, network, credentials. Use those that you would run yourself.

            Every process of a run needs the plug-ins that its configuration names, the questions (`ledger`, `doctor`, `replay` ...) too: the
            configuration is on the run's log, the code is not. Observers are for the process that learns alone.

            ## What is refused

            | what | the sentence begins |
            | --- | --- |
            | a jar built against another version of the interface; this is version %d | the plug-in PATH was built against version ... |
            | a jar built against classes that this release has not | the plug-in PATH was built against another release of Millrace ... |
            | two plug-ins of one name | two plug-ins are called NAME: PATH and PATH |
            | two kinds of one name at one door | two kinds of DOOR are called NAME |
            | a file that is no jar, or a jar that offers nothing | the plug-in PATH cannot be read, offers nothing |
            | a kind whose record no configuration can hold | the plug-in PATH offers NAME, which cannot be configured |
            | a name in a configuration that nobody brought | KEY must be one of ..., or a kind of a plug-in |

            All of them before anything starts, with exit code 2.

            ## Configuration

            ```
            task: {kind: sort, digits: 3}      # a kind with settings
            reward: verified                   # a kind with its defaults
            algorithm:
              masks: [m2po, {kind: sequence_mask}]   # a list of kinds
            ```

            `--set task=sort --set task.digits=3` says the same, and `--set algorithm.masks[0].threshold=0.1` changes one element of a list
            (`masks.0.threshold` where a shell takes brackets for its own). What is not named keeps the kind's default. The name of a kind is part
            of the run's fingerprint, the name of its class is not.

            ## Doors

            """;

    private static final String AFTER = """

            Prompt datasets, tokenizers and inference engines get doors of their own together with pretrained models. Until then a task brings its
            prompts and its tokenizer.
            """;

    private PluginsPage() {}

    static String text() {
        Catalogue catalogue = Catalogue.current();
        StringBuilder page = new StringBuilder(BEFORE.formatted(PluginApi.VERSION))
                .append(Tables.head("door", "key", "interface", "what comes through it"));
        for (Door door : catalogue.doors()) {
            page.append(Tables.row(
                    "[" + door.name() + "](#" + door.name() + ")",
                    Tables.code(door.key()),
                    Tables.code(door.type().getName()),
                    door.meaning()));
        }
        page.append(AFTER);
        for (Door door : catalogue.doors()) {
            page.append("\n### ").append(door.name()).append("\n\n");
            if (catalogue.kinds(door.type()).isEmpty()) {
                page.append("None is built in.\n");
                continue;
            }
            page.append(Tables.head("kind", "what it is"));
            for (Kind kind : catalogue.kinds(door.type())) {
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
}
