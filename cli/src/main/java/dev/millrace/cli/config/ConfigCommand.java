package dev.millrace.cli.config;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace config}: the configuration as it would be used, or what every key means. */
@Command(
        name = "config",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description =
                "Prints the whole configuration as YAML, with every key as it would be used; or what every key means.",
        footer = {"", "millrace config > my.yaml; edit it; millrace train --config my.yaml"})
public final class ConfigCommand implements Callable<Integer> {
    static final String REFERENCE = "/dev/millrace/cli/config/configuration.md";

    @Mixin
    private ConfigOptions options;

    @Option(
            names = "--reference",
            description = "Print every key with its default and its meaning, those of plug-ins too.")
    private boolean reference;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException {
        PrintWriter out = spec.commandLine().getOut();
        if (reference) {
            try (InputStream text = ConfigCommand.class.getResourceAsStream(REFERENCE)) {
                out.print(new String(text.readAllBytes(), StandardCharsets.UTF_8));
                out.print(PluginReference.text(Catalogue.current()));
            }
        } else {
            out.print(ConfigTree.write(
                    ConfigBinder.unbind(options.over(ConfigTree.empty()).resolve())));
        }
        out.flush();
        return 0;
    }
}
