package dev.millrace.schemas.run;

import dev.millrace.schemas.registry.SchemaRegistry;
import java.util.HashMap;
import java.util.Map;

/**
 * What a role needs to reach the log of its run: how to connect, where, as which run, and the schemas.
 *
 * @param clientProperties Kafka client settings common to all clients, {@code bootstrap.servers} at least
 * @param topics the run's topics
 * @param run the run's identity
 * @param registry shared; whoever made it closes it
 */
public record LogConnection(
    Map<String, Object> clientProperties, RunTopics topics, RunIdentity run, SchemaRegistry registry) {

    public LogConnection {
        clientProperties = Map.copyOf(clientProperties);
        if (!clientProperties.containsKey("bootstrap.servers")) {
            throw new IllegalArgumentException("a log connection needs bootstrap.servers");
        }
    }

    /** The client settings with others put over them. */
    public Map<String, Object> with(Map<String, Object> overrides) {
        Map<String, Object> merged = new HashMap<>(clientProperties);
        merged.putAll(overrides);
        return merged;
    }

    /** A consumer group, transactional or application id of this run: {@code <prefix><run id>.<role>}. */
    public String scoped(String role) {
        return topics.prefix() + run.runId() + "." + role;
    }
}
