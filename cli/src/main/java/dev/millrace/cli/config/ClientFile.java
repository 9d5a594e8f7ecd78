package dev.millrace.cli.config;

import dev.millrace.cli.HelpHeading;
import dev.millrace.runtime.config.ConfigLayers;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The client properties file of Kafka's tools, under their option name. */
@HelpHeading("Cluster")
public final class ClientFile {
    @Option(
            names = "--command-config",
            paramLabel = "FILE",
            description = "Kafka client properties by Java's names, as Kafka's tools take them; over --config.")
    private Path file;

    /** The file; null if not given. */
    public Path file() {
        return file;
    }

    public void over(ConfigLayers layers) {
        if (file != null) {
            layers.clientProperties(file);
        }
    }
}
