package dev.millrace.runtime.train;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import java.nio.file.Path;
import java.util.List;

/**
 * Refuses to continue a run under changed settings that are fixed at its start: its identity, the location of its log,
 * and the origin of version 0. Everything else may change between invocations.
 */
public final class ResumeCheck {
    private static final List<String> FIXED =
            List.of("/run/id", "/run/policy_id", "/run/topic_prefix", "/run/seed", "/model", "/learner/lora");

    private final Path file;
    private final ObjectNode tree;
    private final MillraceConfig begun;

    private ResumeCheck(Path file, ObjectNode tree, MillraceConfig begun) {
        this.file = file;
        this.tree = tree;
        this.begun = begun;
    }

    /**
     * Initial configuration of the run in a folder.
     *
     * @throws ConfigException if its config.yaml is not a configuration
     */
    public static ResumeCheck in(Path folder) {
        Path file = RunDirectory.config(folder);
        return of(file, ConfigTree.read(file));
    }

    /**
     * Initial configuration of the run.
     *
     * @param file the run's config.yaml
     * @throws ConfigException if that is not a configuration
     */
    static ResumeCheck of(Path file, ObjectNode tree) {
        try {
            return new ResumeCheck(file, tree, ConfigBinder.bind(MillraceConfig.defaults(), tree));
        } catch (ConfigException e) {
            throw new ConfigException(file + ": " + e.getMessage(), e);
        }
    }

    /** As keys and values, to be overridden. */
    public ObjectNode tree() {
        return tree.deepCopy();
    }

    public String runId() {
        return begun.run().id();
    }

    /**
     * Checks the requested configuration.
     *
     * @throws ConfigException naming the key and both values
     */
    public void require(MillraceConfig now) {
        ObjectNode old = ConfigBinder.unbind(begun);
        ObjectNode wanted = ConfigBinder.unbind(now);
        for (String key : FIXED) {
            same(key.substring(1).replace('/', '.'), old.at(key), wanted.at(key));
        }
        if (begun.run().embedded() != now.run().embedded()) { // another address may belong to the same cluster
            same("run.bootstrap_servers", old.at("/run/bootstrap_servers"), wanted.at("/run/bootstrap_servers"));
        }
    }

    private void same(String key, JsonNode old, JsonNode wanted) {
        if (old instanceof ObjectNode object) {
            object.properties()
                    .forEach(entry -> same(key + "." + entry.getKey(), entry.getValue(), wanted.get(entry.getKey())));
        } else if (!old.equals(wanted)) {
            throw new ConfigException(
                    key + " is " + shown(old) + " in " + file + " and " + shown(wanted) + " is requested; it cannot"
                            + " change once a run has started, so leave it unchanged, or give --run-dir a new folder");
        }
    }

    private static String shown(JsonNode value) {
        return value.isTextual() && value.textValue().isEmpty() ? "empty" : value.asText();
    }
}
