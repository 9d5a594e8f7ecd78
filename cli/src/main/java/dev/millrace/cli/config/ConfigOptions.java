package dev.millrace.cli.config;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.HelpHeading;
import dev.millrace.runtime.config.ConfigLayers;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Configuration options: a file, single keys, and named options for common keys. Precedence, lowest first: defaults,
 * the run's own file, {@code --config}, {@code --set}, named options.
 */
@HelpHeading("Configuration")
public final class ConfigOptions {
    @Option(
            names = "--config",
            paramLabel = "FILE",
            description = "YAML file with the configuration; 'millrace config' prints all keys.")
    private Path file;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description =
                    "One configuration key, such as learner.step.optimizer.learning_rate=1e-3; may be given often.")
    private List<String> settings = new ArrayList<>();

    @Option(names = "--seed", paramLabel = "N", description = "Seed of initial weights, prompts and draws (default 1).")
    private Long seed;

    @Option(
            names = "--bootstrap-servers",
            paramLabel = "HOST:PORT",
            description = "Kafka cluster of the run; default: a broker inside the process.")
    private String bootstrapServers;

    @Mixin
    private ClientFile clientFile = new ClientFile();

    @Option(
            names = "--device",
            paramLabel = "DEVICE",
            description = "Where the policy runs: cpu (default), cuda:N or cuda:N:tf32.")
    private String device;

    @Option(
            names = "--metrics-port",
            paramLabel = "PORT",
            description =
                    "HTTP port with /metrics for Prometheus, probes and the schemas' read side; on loopback unless "
                            + "http.host says otherwise.")
    private Integer metricsPort;

    @Option(names = "--verbose", description = "Show stack traces, and log more.")
    @SuppressWarnings("UnusedVariable") // the command line reads it before commands run
    private boolean verbose;

    /**
     * Applies the options over a run's recorded configuration.
     *
     * @param begun empty for a new run
     * @throws dev.millrace.runtime.config.ConfigException naming the key, the value and what is allowed
     */
    public ConfigLayers over(ObjectNode begun) {
        ConfigLayers layers = new ConfigLayers().begunWith(begun);
        if (file != null) {
            layers.file(file);
        }
        clientFile.over(layers);
        if (seed != null) {
            layers.set("run.seed=" + seed);
            layers.set("admission.task_seed=" + seed);
            layers.set("admission.sampling.seed=" + seed);
        }
        settings.forEach(layers::set);
        set(layers, "run.bootstrap_servers", bootstrapServers);
        set(layers, "run.device", device);
        if (metricsPort != null) {
            layers.set("metrics.port=" + metricsPort);
        }
        return layers;
    }

    /** Sets a key by an option, if it is given. */
    public static void set(ConfigLayers layers, String key, @Nullable Object given) {
        if (given != null) {
            layers.set(key, given.toString());
        }
    }
}
