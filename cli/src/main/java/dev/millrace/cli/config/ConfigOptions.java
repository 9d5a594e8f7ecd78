package dev.millrace.cli.config;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.CheckpointModel;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Option;

/**
 * The options with which every command takes its configuration: a file, single keys, and names of their own for
 * what is set most often. Later ones win: defaults, the run's own file, {@code --config}, {@code --set}, options.
 */
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
            description = "Kafka cluster of the run; without it a broker is started inside the process.")
    private String bootstrapServers;

    @Option(names = "--device", paramLabel = "DEVICE", description = "Where the policy runs: cpu (default) or cuda:0.")
    private String device;

    @Option(
            names = "--metrics-port",
            paramLabel = "PORT",
            description = "Open an HTTP port on loopback with /metrics for Prometheus and the schemas' read side.")
    private Integer metricsPort;

    @Option(names = "--verbose", description = "Show stack traces, and log more into the run's millrace.log.")
    private boolean verbose;

    /** True if {@code --verbose} was given. */
    public boolean verbose() {
        return verbose;
    }

    /**
     * The configuration.
     *
     * @param base what a run was begun with; empty for a new one
     * @throws ConfigException naming the key, the value and what is allowed
     */
    public MillraceConfig resolve(ObjectNode base) {
        ObjectNode tree = base.deepCopy();
        if (file != null) {
            merge(tree, ConfigTree.read(file));
        }
        if (seed != null) {
            ConfigTree.set(tree, "run.seed=" + seed);
            ConfigTree.set(tree, "admission.task_seed=" + seed);
            ConfigTree.set(tree, "admission.sampling.seed=" + seed);
        }
        for (String setting : settings) {
            ConfigTree.set(tree, setting);
        }
        if (bootstrapServers != null) {
            ConfigTree.set(tree, "run.bootstrap_servers=\"" + bootstrapServers + "\"");
        }
        if (device != null) {
            ConfigTree.set(tree, "run.device=\"" + device + "\"");
        }
        if (metricsPort != null) {
            ConfigTree.set(tree, "metrics.port=" + metricsPort);
        }
        Optional<CheckpointModel> checkpoint = CheckpointModel.fill(tree, base);
        MillraceConfig config = ConfigBinder.bind(MillraceConfig.defaults(), tree);
        checkpoint.ifPresent(model -> model.require(config.task().task().tokenizer()));
        return config;
    }

    private static void merge(ObjectNode into, ObjectNode over) {
        over.properties().forEach(entry -> {
            if (entry.getValue() instanceof ObjectNode nested
                    && into.get(entry.getKey()) instanceof ObjectNode existing) {
                merge(existing, nested);
            } else {
                into.set(entry.getKey(), entry.getValue());
            }
        });
    }
}
