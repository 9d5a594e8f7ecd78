package dev.millrace.runtime.pipeline;

import dev.millrace.log.Pulse;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.registry.RegistryContents;
import dev.millrace.log.run.BrokerUnavailableException;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.Right;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.metrics.ClientMeters;
import dev.millrace.runtime.metrics.HttpEndpoint;
import dev.millrace.runtime.metrics.Meters;
import dev.millrace.runtime.metrics.Probes;
import dev.millrace.schemas.registry.SchemaRegistryException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.resource.ResourceType;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves a cluster's schemas independent of running roles, with meters and probes. Waits without limit for the topic of
 * the schemas, which the first run creates, and for {@code run.patience_seconds} for a broker. Follows a topic that was
 * deleted and created again.
 */
public final class StandaloneRegistry {
    private static final Logger LOG = LoggerFactory.getLogger(StandaloneRegistry.class);
    private static final long LOOK_PERIOD_MS = 1_000;

    private final MillraceConfig config;
    private final int port;
    private final PrintWriter out;
    private final StopRequest stop = new StopRequest();
    private final Pulse pulse = new Pulse(System::nanoTime);
    private volatile @Nullable LogSchemaRegistry registry;
    /** For the registry's topic. */
    private String topicId = "";

    /**
     * Opens nothing yet.
     *
     * @param port 0 for any free one
     * @param out gets a line once the port is open
     */
    public StandaloneRegistry(MillraceConfig config, int port, PrintWriter out) {
        this.config = config;
        this.port = port;
        this.out = out;
    }

    /** Requests a stop; returns at once. Thread-safe, before {@link #run} too. */
    public void stop() {
        stop.make();
    }

    /**
     * Serves until it is stopped.
     *
     * @throws LogSetupException if the cluster refuses the account, or no broker answers for {@code run.patience_seconds}
     */
    public void run() throws Exception {
        try (Meters meters = new Meters(config.metrics(), "");
                HttpEndpoint endpoint = HttpEndpoint.open(config.http(), "--port", port, meters.registry())) {
            Map<String, Object> client = ClientMeters.reportingTo(meters.registry(), config.clientSettings());
            client.put("bootstrap.servers", config.run().bootstrapServers());
            endpoint.serve(Optional.of(new Served()));
            endpoint.answer(new Probes(
                    Map.of("registry", pulse),
                    config.run()
                            .patience()
                            .plus(Duration.ofMillis(3 * config.topics().timeoutMs())), // the calls of one pass
                    () -> false));
            out.println("schemas of topic " + config.topics().schemasTopic() + " on "
                    + config.run().bootstrapServers() + " at " + endpoint.url().orElseThrow()
                    + "; stop it with Ctrl-C");
            out.flush();
            follow(client);
        } finally {
            close();
        }
    }

    private void follow(Map<String, Object> client) throws Exception {
        try (TopicAdministration administration = new TopicAdministration(client, config.topics())) {
            long answeredNanos = System.nanoTime();
            while (!stop.isMade()) {
                try {
                    Optional<String> why = stop.starting(() -> look(administration, client));
                    say(why, null);
                    answeredNanos = System.nanoTime();
                } catch (StoppedException e) {
                    return;
                } catch (LogSetupException | SchemaRegistryException e) {
                    boolean isPatient = System.nanoTime() - answeredNanos
                            < config.run().patience().toNanos();
                    if (!isPatient || !passes(e)) {
                        throw explained(e);
                    }
                    say(Optional.of("the cluster does not answer"), e);
                }
                if (stop.await(LOOK_PERIOD_MS)) {
                    return;
                }
            }
        }
    }

    /** Reads the topic to its end; returns why it cannot be read, or empty. */
    private Optional<String> look(TopicAdministration administration, Map<String, Object> client) {
        administration.requireReachable();
        String topic = config.topics().schemasTopic();
        String id = administration.ids(List.of(topic)).getOrDefault(topic, "");
        if (!id.equals(topicId)) {
            close();
            topicId = "";
        }
        if (id.isEmpty()) {
            return Optional.of("there is no topic " + topic + "; the first run creates it");
        }
        LogSchemaRegistry open = registry;
        if (open == null) {
            registry = LogSchemaRegistry.reading(client, topic, config.topics().timeoutMs());
            topicId = id;
        } else {
            open.contents().subjects();
        }
        return Optional.empty();
    }

    private static boolean passes(RuntimeException failure) {
        return !AccountRights.isCauseOf(failure)
                && (failure instanceof BrokerUnavailableException
                        || failure instanceof SchemaRegistryException
                        || failure.getCause() instanceof RetriableException);
    }

    private RuntimeException explained(RuntimeException failure) {
        if (failure instanceof LogSetupException) {
            return failure;
        }
        return new LogSetupException(
                AccountRights.isCauseOf(failure)
                        ? "cannot serve schemas: "
                                + Right.on(ResourceType.TOPIC, config.topics().schemasTopic(), AclOperation.READ)
                                        .lacking(config.run().bootstrapServers())
                        : String.valueOf(failure.getMessage()),
                failure);
    }

    private void say(Optional<String> why, @Nullable Exception failure) {
        if (!why.equals(pulse.whyUnready())) {
            if (why.isPresent()) {
                LOG.warn("not serving schemas: {}", why.get(), failure);
            } else {
                LOG.info("serving schemas");
            }
        }
        pulse.turn(why);
    }

    private void close() {
        LogSchemaRegistry open = registry;
        registry = null;
        if (open != null) {
            open.close();
        }
    }

    /** The topic's schemas; while it cannot be read, every request fails at once. */
    private final class Served implements RegistryContents {
        private RegistryContents contents() {
            LogSchemaRegistry open = registry;
            Optional<String> why = pulse.whyUnready();
            if (why.isPresent() || open == null) {
                throw new SchemaRegistryException("cannot serve schemas: " + why.orElse("it is starting"));
            }
            return open.contents();
        }

        @Override
        public List<String> subjects() {
            return contents().subjects();
        }

        @Override
        public SortedMap<Integer, Registration> versions(String subject) {
            return contents().versions(subject);
        }

        @Override
        public Optional<String> schemaText(int id) {
            return contents().schemaText(id);
        }

        @Override
        public String compatibilityLevel() {
            return contents().compatibilityLevel();
        }
    }
}
