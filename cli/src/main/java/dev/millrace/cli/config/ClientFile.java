package dev.millrace.cli.config;

import dev.millrace.cli.HelpHeading;
import dev.millrace.runtime.config.ConfigLayers;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The file of client properties that every tool of Kafka takes, by the name that it has there. */
@HelpHeading("Cluster")
public final class ClientFile {
    @Option(
            names = "--command-config",
            paramLabel = "FILE",
            description = "Kafka client properties by Java's names, as Kafka's tools take them; over --config.")
    private Path file;

    /** The file; null if none was given. */
    public Path file() {
        return file;
    }

    /** Puts what the file says over the layers. */
    public void over(ConfigLayers layers) {
        if (file != null) {
            layers.clientProperties(file);
        }
    }
}
