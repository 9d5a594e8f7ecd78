package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A run's configuration as recorded in its claim on the log: every key of run scope, resolved, and the defaults that
 * its creator chose. Keys of process scope are not recorded, so it has no address, no key store path and no secret.
 * Immutable.
 */
public final class RecordedConfiguration {
    /** Keys that define a run; they never change. */
    private static final List<String> IDENTITY = List.of(
            "run.id",
            "run.policy_id",
            "run.topic_prefix",
            "run.seed",
            "run.recorded",
            "model",
            "task.files.tokenizer_sha256");

    private final ObjectNode tree;
    private final String where;

    private RecordedConfiguration(ObjectNode tree, String where) {
        this.tree = tree;
        this.where = where;
    }

    /** Returns the record of a configuration whose run has a name. */
    public static RecordedConfiguration of(MillraceConfig config) {
        ObjectNode whole = ConfigBinder.unbind(config);
        // which prefix an empty one means depends on where the broker is, and that is not recorded
        ((ObjectNode) whole.get("run"))
                .put("topic_prefix", config.run().topics().prefix());
        return new RecordedConfiguration(recorded("", whole), "");
    }

    /**
     * Reads what was recorded.
     *
     * @param where it was found, for messages: {@code the configuration of run r on its log}
     * @throws ConfigException if it is not a configuration
     */
    public static RecordedConfiguration parse(String text, String where) {
        ObjectNode tree = ConfigTree.parse(text, where);
        try {
            ConfigBinder.bind(MillraceConfig.defaults(), tree);
        } catch (ConfigException e) {
            throw new ConfigException(where + ": " + e.getMessage(), e);
        }
        // keys of process scope are not taken from a log that others write
        return new RecordedConfiguration(recorded("", tree), where);
    }

    private static ObjectNode recorded(String path, ObjectNode group) {
        ObjectNode recorded = ConfigTree.empty();
        group.properties().forEach(entry -> {
            String key = ConfigBinder.join(path, entry.getKey());
            if (entry.getValue() instanceof ObjectNode nested && !key.equals("kafka")) {
                ObjectNode part = recorded(key, nested);
                if (!part.isEmpty()) {
                    recorded.set(entry.getKey(), part);
                }
            } else if (KeyScope.of(key) != KeyScope.PROCESS) {
                recorded.set(
                        entry.getKey(),
                        entry.getValue() instanceof ArrayNode list ? recorded(key, list) : entry.getValue());
            }
        });
        return recorded;
    }

    /** Copies a list without the elements' keys of process scope. */
    private static ArrayNode recorded(String path, ArrayNode list) {
        ArrayNode recorded = ConfigTree.empty().arrayNode();
        list.forEach(element -> recorded.add(element instanceof ObjectNode group ? recorded(path, group) : element));
        return recorded;
    }

    /** As text, which is YAML. */
    public String text() {
        return ConfigTree.write(tree);
    }

    /** Returns a copy as keys and values, which the caller may change; {@link ConfigLayers} puts others over it. */
    public ObjectNode tree() {
        return tree.deepCopy();
    }

    /**
     * Refuses a configuration that contradicts the run's identity.
     *
     * @param wayOut what to do about it, after "so"
     * @throws ConfigException naming the key that contradicts and both values
     */
    public void require(MillraceConfig now, String wayOut) {
        differences(now).findFirst().ifPresent(difference -> {
            throw difference.refused(where, "all roles of a run share one configuration", wayOut);
        });
    }

    /**
     * Refuses to continue the run as another run; other differences are changes from now on.
     *
     * @return a sentence for each change, none if there is nothing to write down
     * @throws ConfigException naming the key that contradicts and both values
     */
    public List<String> changes(MillraceConfig now) {
        differences(now)
                .filter(difference -> IDENTITY.stream().anyMatch(difference::isOf))
                .findFirst()
                .ifPresent(difference -> {
                    throw difference.refused(
                            where,
                            "it cannot change once a run has started",
                            "leave it unchanged, or start another run");
                });
        return differences(now).map(Difference::sentence).toList();
    }

    private Stream<Difference> differences(MillraceConfig now) {
        // over today's defaults: a key that is newer than the record had its default
        MillraceConfig begun = ConfigBinder.bind(MillraceConfig.defaults(), tree);
        return differences("", of(begun).tree, of(now).tree);
    }

    private static Stream<Difference> differences(String path, ObjectNode old, ObjectNode now) {
        if (!kind(old).equals(kind(now))) {
            return Stream.of(new Difference(ConfigBinder.join(path, Choice.KIND), kind(old), kind(now)));
        }
        Set<String> names = new LinkedHashSet<>();
        old.fieldNames().forEachRemaining(names::add);
        now.fieldNames().forEachRemaining(names::add);
        return names.stream().flatMap(name -> {
            String key = ConfigBinder.join(path, name);
            if (old.get(name) instanceof ObjectNode one && now.get(name) instanceof ObjectNode other) {
                return differences(key, one, other);
            }
            if (old.get(name) instanceof ArrayNode one
                    && now.get(name) instanceof ArrayNode other
                    && isOfSameKinds(one, other)) {
                return IntStream.range(0, one.size())
                        .boxed()
                        .flatMap(i ->
                                differences(key + "[" + i + "]", (ObjectNode) one.get(i), (ObjectNode) other.get(i)));
            }
            return KeyScope.of(key) != KeyScope.RUN || old.path(name).equals(now.path(name))
                    ? Stream.empty()
                    : Stream.of(new Difference(key, shown(old.path(name)), shown(now.path(name))));
        });
    }

    /** Then what differs is a setting of an element; otherwise it is the list. */
    private static boolean isOfSameKinds(ArrayNode one, ArrayNode other) {
        return one.size() == other.size()
                && IntStream.range(0, one.size())
                        .allMatch(i -> one.get(i) instanceof ObjectNode old
                                && other.get(i) instanceof ObjectNode now
                                && kind(old).equals(kind(now)));
    }

    private static String kind(ObjectNode group) {
        return Optional.ofNullable(group.get(Choice.KIND)).map(JsonNode::asText).orElse("");
    }

    static String shown(JsonNode value) {
        return value.isTextual() && value.textValue().isEmpty()
                ? "empty"
                : value.isValueNode() ? value.asText() : value.toString();
    }

    private record Difference(String key, String old, String now) {
        boolean isOf(String group) {
            return key.equals(group) || key.startsWith(group + ".");
        }

        String sentence() {
            return key + " was " + old + " and is " + now + " from here on";
        }

        ConfigException refused(String where, String why, String wayOut) {
            return new ConfigException(
                    key + " is " + old + " in " + where + " and " + now + " is requested; " + why + ", so " + wayOut);
        }
    }
}
