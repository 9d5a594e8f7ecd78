package dev.millrace.log.run;

import dev.millrace.log.LogConnection;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.registry.RegistryContents;
import dev.millrace.log.topics.LogSetupException;
import dev.millrace.log.topics.TopicAdministration;
import dev.millrace.log.topics.TopicsConfig;
import dev.millrace.schemas.registry.RestSchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunSchemas;
import dev.millrace.schemas.run.RunTopics;
import java.time.Clock;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;

/**
 * A run's log, ready to be used: topics, identity and schemas. Closing it closes the registry, nothing else.
 */
public final class RunLog implements AutoCloseable {
    private final LogConnection connection;
    private final boolean resumed;

    private RunLog(LogConnection connection, boolean resumed) {
        this.connection = connection;
        this.resumed = resumed;
    }

    /**
     * Creates a run or goes on with it; any number of roles may do so at once.
     *
     * @param clientProperties {@code bootstrap.servers} and whatever else it takes to connect
     * @param schemaRegistryUrl of a registry that speaks Confluent's protocol; empty to keep schemas on the log
     * @throws LogSetupException if the cluster does not answer, the prefix belongs to another run, or a topic has
     *     settings that contradict
     */
    public static RunLog open(
            Map<String, Object> clientProperties,
            RunTopics topics,
            RunIdentity run,
            TopicsConfig config,
            String schemaRegistryUrl,
            Clock clock) {
        try (TopicAdministration administration = new TopicAdministration(clientProperties, config)) {
            administration.requireReachable();
            if (schemaRegistryUrl.isEmpty()) {
                administration.prepareSchemas();
            }
            SchemaRegistry registry = registry(clientProperties, config, schemaRegistryUrl, true);
            try {
                refuseOrphans(administration, topics);
                administration.prepareClaim(topics);
                RunClaims claims = new RunClaims(clientProperties, topics, registry, config.timeoutMs());
                boolean resumed = claims.claim(run, clock);
                administration.prepareRun(topics);
                register(registry, topics);
                return new RunLog(connection(clientProperties, topics, run, config, registry), resumed);
            } catch (RuntimeException e) {
                registry.close();
                throw explained(e);
            }
        }
    }

    /**
     * Takes part in a run that exists, writing neither topics nor schemas.
     *
     * @throws LogSetupException also if there is no such run
     */
    public static RunLog join(
            Map<String, Object> clientProperties,
            RunTopics topics,
            RunIdentity run,
            TopicsConfig config,
            String schemaRegistryUrl) {
        return existing(clientProperties, topics, config, schemaRegistryUrl, claims -> {
            claims.require(run);
            return run;
        });
    }

    /**
     * As {@link #join}, whichever run it is that these topics belong to, for one who looks at it from outside.
     *
     * @throws LogSetupException also if there is no run
     */
    public static RunLog find(
            Map<String, Object> clientProperties, RunTopics topics, TopicsConfig config, String schemaRegistryUrl) {
        return existing(clientProperties, topics, config, schemaRegistryUrl, RunClaims::owner);
    }

    private static RunLog existing(
            Map<String, Object> clientProperties,
            RunTopics topics,
            TopicsConfig config,
            String schemaRegistryUrl,
            Function<RunClaims, RunIdentity> identified) {
        try (TopicAdministration administration = new TopicAdministration(clientProperties, config)) {
            administration.requireReachable();
            Set<String> missing = new TreeSet<>(topics.all());
            missing.removeAll(administration.existing(topics.all()));
            if (!missing.isEmpty()) {
                throw new LogSetupException("there is no run under the topic prefix '" + topics.prefix() + "': topics "
                        + missing + " are missing; create the run first, or correct the prefix");
            }
            SchemaRegistry registry = registry(clientProperties, config, schemaRegistryUrl, false);
            try {
                RunIdentity run =
                        identified.apply(new RunClaims(clientProperties, topics, registry, config.timeoutMs()));
                return new RunLog(connection(clientProperties, topics, run, config, registry), true);
            } catch (RuntimeException e) {
                registry.close();
                throw explained(e);
            }
        }
    }

    /** What roles are made with. */
    public LogConnection connection() {
        return connection;
    }

    /** Whether the run was there before. */
    public boolean resumed() {
        return resumed;
    }

    /** The schemas on the log, for the HTTP port to serve; empty where another registry keeps them. */
    public Optional<RegistryContents> registryContents() {
        return connection.registry() instanceof LogSchemaRegistry log ? Optional.of(log.contents()) : Optional.empty();
    }

    @Override
    public void close() {
        connection.registry().close();
    }

    private static SchemaRegistry registry(
            Map<String, Object> clientProperties, TopicsConfig config, String url, boolean mayWrite) {
        try {
            if (!url.isEmpty()) {
                return new RestSchemaRegistry(url, mayWrite, config.timeoutMs());
            }
            return mayWrite
                    ? LogSchemaRegistry.writing(clientProperties, config.schemasTopic(), config.timeoutMs())
                    : LogSchemaRegistry.reading(clientProperties, config.schemasTopic(), config.timeoutMs());
        } catch (SchemaRegistryException e) {
            throw explained(e);
        }
    }

    private static void register(SchemaRegistry registry, RunTopics topics) {
        if (registry instanceof LogSchemaRegistry log) {
            log.register(RunSchemas.bySubject(topics));
        } else {
            RunSchemas.bySubject(topics).forEach(registry::idOf);
        }
    }

    /** Topics without a claim were made by somebody else, or are what is left of a run that was deleted by half. */
    private static void refuseOrphans(TopicAdministration administration, RunTopics topics) {
        Set<String> there = administration.existing(topics.all());
        if (!there.isEmpty() && !there.contains(topics.run())) {
            throw new LogSetupException("topics " + new TreeSet<>(there) + " exist, but no " + topics.run()
                    + " says whose they are; delete them, or choose another topic prefix than '" + topics.prefix()
                    + "'");
        }
    }

    private static LogConnection connection(
            Map<String, Object> clientProperties,
            RunTopics topics,
            RunIdentity run,
            TopicsConfig config,
            SchemaRegistry registry) {
        Map<String, Object> properties = new HashMap<>(clientProperties);
        properties.put("max.request.size", config.maxRecordBytes());
        return new LogConnection(properties, topics, run, registry);
    }

    private static LogSetupException explained(RuntimeException e) {
        return e instanceof LogSetupException known
                ? known
                : new LogSetupException(Objects.requireNonNullElse(e.getMessage(), e.toString()), e);
    }
}
