package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;

/**
 * A configuration merged from layers: the defaults, a run's recorded configuration, files, single keys. Later layers
 * win, key by key.
 *
 * <pre>{@code
 * MillraceConfig config = new ConfigLayers()
 *         .file(Path.of("my.yaml"))
 *         .set("learner.step.optimizer.learning_rate=1e-3")
 *         .resolve();
 * }</pre>
 *
 * <p>Every method refuses a mistake with a {@link ConfigException}, whose message is a sentence that names the key, the value and
 * what is allowed. Not thread-safe.
 */
public final class ConfigLayers {
    private static final Set<String> WHICH_RUN = Set.of("run.id", "run.epoch", "run.policy_id", "run.topic_prefix");

    private final ObjectNode begun = ConfigTree.empty();
    private final ObjectNode tree = ConfigTree.empty();

    /** Adds a run's recorded configuration as the lowest layer, without its epoch, which is read from the log. */
    public ConfigLayers begunWith(ObjectNode ofRun) {
        ObjectNode lasting = ofRun.deepCopy();
        if (lasting.get("run") instanceof ObjectNode run) {
            run.remove("epoch");
        }
        ConfigTree.merge(begun, lasting);
        ConfigTree.merge(tree, StalenessBound.following(lasting));
        return this;
    }

    /** A YAML file; it may set a few keys only. */
    public ConfigLayers file(Path file) {
        ConfigTree.merge(tree, ConfigTree.read(file));
        return this;
    }

    /**
     * A file of client properties by Java's names, as Kafka's tools take it: {@code bootstrap.servers} says where the cluster is, the
     * others are settings under {@code kafka}.
     */
    public ConfigLayers clientProperties(Path file) {
        Properties properties = new Properties();
        try (InputStream in = Files.newInputStream(file)) {
            properties.load(in);
        } catch (NoSuchFileException e) {
            throw new ConfigException("there is no file of client properties " + file, e);
        } catch (IOException | IllegalArgumentException e) {
            throw new ConfigException("cannot read the client properties " + file + ": " + e.getMessage(), e);
        }
        for (String name : new TreeSet<>(properties.stringPropertyNames())) {
            if (name.equals("bootstrap.servers")) {
                set("run.bootstrap_servers", properties.getProperty(name));
                continue;
            }
            try {
                ClientSettings.check(Map.of(name, ""));
            } catch (ConfigException e) {
                throw new ConfigException(file + ": " + e.getMessage(), e);
            }
            set("kafka." + name, properties.getProperty(name));
        }
        return this;
    }

    /**
     * YAML text.
     *
     * @param name of the source, for messages
     */
    public ConfigLayers yaml(String text, String name) {
        ConfigTree.merge(tree, ConfigTree.parse(text, name));
        return this;
    }

    /** One key, {@code a.b.c=value}; the value is read as YAML. */
    public ConfigLayers set(String setting) {
        ConfigTree.set(tree, setting);
        return this;
    }

    /** One key whose value is text, even if it looks like a number. */
    public ConfigLayers set(String key, String text) {
        ConfigTree.set(tree, key, text);
        return this;
    }

    /** Returns whether a layer has keys beyond the run's identity and its location; unknown keys count. */
    public boolean configuresRun() {
        return configuresRun("", tree);
    }

    private static boolean configuresRun(String path, ObjectNode tree) {
        return tree.properties().stream().anyMatch(entry -> {
            String key = ConfigBinder.join(path, entry.getKey());
            return entry.getValue() instanceof ObjectNode group && !key.equals("kafka")
                    ? configuresRun(key, group)
                    : !WHICH_RUN.contains(key) && KeyScope.find(key).orElse(KeyScope.RUN) == KeyScope.RUN;
        });
    }

    /**
     * Returns the run's identity and connection with everything else at its defaults: enough to look up the recorded
     * configuration.
     */
    public MillraceConfig whereabouts() {
        ObjectNode part = ConfigTree.empty();
        for (String group : List.of("run", "kafka", "topics", "http")) {
            if (tree.has(group)) {
                part.set(group, tree.get(group));
            }
        }
        return ConfigBinder.bind(MillraceConfig.defaults(), part);
    }

    public MillraceConfig resolve() {
        ObjectNode whole = tree.deepCopy();
        TextRun.read(whole);
        Optional<CheckpointModel> checkpoint = CheckpointModel.fill(whole, begun);
        if (begun.isEmpty()) {
            checkpoint.ifPresent(model -> PretrainedDefaults.fill(whole, model.shape()));
        }
        TextRun.fill(whole, begun);
        if (whole.get("algorithm") instanceof ObjectNode algorithm) {
            VerlKeys.read(algorithm);
        }
        StalenessBound.fill(whole);
        MillraceConfig config = ConfigBinder.bind(MillraceConfig.defaults(), whole);
        checkpoint.ifPresent(model -> model.require(config.task()));
        FlowRules.requireGroups(config.admission(), config.topology(), config.algorithm());
        return config;
    }
}
