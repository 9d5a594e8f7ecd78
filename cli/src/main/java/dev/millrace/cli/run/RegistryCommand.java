package dev.millrace.cli.run;

import dev.millrace.cli.Logs;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.StopSignals;
import dev.millrace.cli.config.ClientFile;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.StandaloneRegistry;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace registry}: serves the schemas of a cluster's runs over HTTP. */
@Command(
        name = "registry",
        description = "Serves the schemas of all runs on a cluster, which the topic _schemas keeps, as the read side "
                + "of Confluent's registry: listing, look-up and compatibility checks. Registers nothing: the"
                + " creator of a run does. Also serves /metrics, /livez and /readyz. Listens on loopback unless"
                + " http.host says "
                + "otherwise.",
        footer = {
            "",
            "millrace registry --bootstrap-servers kafka:9092",
            "millrace registry --bootstrap-servers kafka:9092 --set topics.schemas_topic=my_schemas --port 0",
            "",
            "Needs Read on the topic. Several may run at once.",
            "",
            "Exit codes: 130 it was ended; 1 a failure; 2 a mistake in the command line."
        })
public final class RegistryCommand extends ScreenCommand {
    @Option(
            names = "--bootstrap-servers",
            paramLabel = "HOST:PORT",
            description = "Kafka cluster whose schemas it serves.")
    private String bootstrapServers;

    @Mixin
    private ClientFile clientFile = new ClientFile();

    @Option(
            names = "--port",
            paramLabel = "PORT",
            defaultValue = "8081",
            description = "HTTP port; 0 for any free one (default ${DEFAULT-VALUE}).")
    private int port;

    @Option(
            names = "--config",
            paramLabel = "FILE",
            description = "YAML file with client settings, http and topics.schemas_topic.")
    private Path file;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "One configuration key, such as http.host=0.0.0.0; may be given often.")
    private List<String> settings = new ArrayList<>();

    @Option(names = "--verbose", description = "Show stack traces, and log more.")
    @SuppressWarnings("UnusedVariable") // the command line reads it before commands run
    private boolean verbose;

    @Override
    public Integer call() throws Exception {
        ViewOptions.requirePort("--port", port);
        MillraceConfig config = config();
        Logs.ofRole();
        StandaloneRegistry registry = new StandaloneRegistry(config, port, out());
        return StopSignals.during(
                () -> {
                    registry.run();
                    return StopSignals.INTERRUPTED;
                },
                registry::stop);
    }

    private MillraceConfig config() {
        ConfigLayers layers = new ConfigLayers();
        if (file != null) {
            layers.file(file);
        }
        clientFile.over(layers);
        settings.forEach(layers::set);
        ConfigOptions.set(layers, "run.bootstrap_servers", bootstrapServers);
        MillraceConfig config = layers.whereabouts();
        if (config.run().embedded()) {
            throw new ConfigException("no cluster given; give --bootstrap-servers HOST:PORT");
        }
        if (!config.run().schemaRegistryUrl().written().isEmpty()) {
            throw new ConfigException(
                    "run.schema_registry_url names another registry, which has the schemas; leave it out to serve those of topic "
                            + config.topics().schemasTopic());
        }
        return config;
    }
}
