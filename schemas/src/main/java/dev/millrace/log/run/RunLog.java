package dev.millrace.log.run;

import dev.millrace.log.LogConnection;
import dev.millrace.log.SecretException;
import dev.millrace.log.SecretSettings;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.registry.RegistryContents;
import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.registry.RestSchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunSchemas;
import dev.millrace.schemas.run.RunTopics;
import java.time.Clock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.avro.Schema;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A run's log, ready to be used: topics, identity and schemas. Closing it closes the registry, nothing else.
 */
public final class RunLog implements AutoCloseable {
    /** What the transactional ids of those begin with that write what an epoch consists of. */
    private static final Pattern ROLES =
            Pattern.compile("learner$|admission-\\d+$|(generator|scorer|reference|teacher|topology)-");

    private final LogConnection connection;
    private final RunClaims claims;
    private final ClaimedRun claimed;

    private RunLog(LogConnection connection, RunClaims claims, ClaimedRun claimed) {
        this.connection = connection;
        this.claims = claims;
        this.claimed = claimed;
    }

    /**
     * What a run is created with.
     *
     * @param partnerTopics those of {@link RunTopics#ofPartners} that its topology joins; the others are not made
     * @param configuration recorded if the run is created; what {@link RunLog#claim} has of it counts
     */
    public record NewRun(RunIdentity run, Set<String> partnerTopics, Optional<String> configuration) {}

    /** Creates, or opens, a run without a recorded configuration, whose topology joins scores only. */
    public static RunLog open(
            Map<String, Object> clientProperties,
            RunTopics topics,
            RunIdentity run,
            TopicsConfig config,
            String schemaRegistryUrl,
            Clock clock) {
        NewRun created = new NewRun(run, Set.of(), Optional.empty());
        return open(clientProperties, topics, created, config, schemaRegistryUrl, clock);
    }

    /**
     * Creates a run or continues with it, in the epoch in which it is; any number of roles may do so at once.
     *
     * @param clientProperties {@code bootstrap.servers} and the other settings of the connection
     * @param schemaRegistryUrl of a registry that speaks Confluent's protocol, secrets in it as references; empty to keep
     *     schemas on the log
     * @throws LogSetupException if the cluster does not answer, the prefix belongs to another run, or a topic has
     *     settings that contradict
     */
    public static RunLog open(
            Map<String, Object> clientProperties,
            RunTopics topics,
            NewRun created,
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
                ClaimedRun claimed = claims.claim(created.run(), created.configuration(), clock);
                administration.prepareRun(topics, created.partnerTopics());
                register(registry, topics, created.partnerTopics());
                claimed = claims.place(claimed.run(), place(administration, topics), claimed.before());
                return new RunLog(connection(clientProperties, topics, claimed, config, registry), claims, claimed);
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
        return existing(clientProperties, topics, config, schemaRegistryUrl, true, claims -> claims.require(run));
    }

    /**
     * As {@link #join}, whichever run it is that these topics belong to, for one who looks at it from outside.
     *
     * @throws LogSetupException also if there is no run
     */
    public static RunLog find(
            Map<String, Object> clientProperties, RunTopics topics, TopicsConfig config, String schemaRegistryUrl) {
        return existing(clientProperties, topics, config, schemaRegistryUrl, true, RunClaims::owner);
    }

    /**
     * As {@link #find}, of a run that may have lost all topics but its claim's: for reports of the loss and repairs.
     *
     * @throws LogSetupException if there is no claim
     */
    public static RunLog findDamaged(
            Map<String, Object> clientProperties, RunTopics topics, TopicsConfig config, String schemaRegistryUrl) {
        return existing(clientProperties, topics, config, schemaRegistryUrl, false, RunClaims::owner);
    }

    private static RunLog existing(
            Map<String, Object> clientProperties,
            RunTopics topics,
            TopicsConfig config,
            String schemaRegistryUrl,
            boolean isWhole,
            Function<RunClaims, ClaimedRun> identified) {
        try (TopicAdministration administration = new TopicAdministration(clientProperties, config)) {
            administration.requireReachable();
            Set<String> missing = new TreeSet<>(topics.required());
            missing.removeAll(administration.existing(topics.required()));
            boolean isClaimed = !missing.contains(topics.run());
            if (isClaimed && isWhole && !missing.isEmpty()) {
                throw new LogSetupException("topics " + missing + " of the run under the topic prefix '"
                        + topics.prefix() + "' were deleted, or the run is only partly created; millrace repair,"
                        + " with the options that name the run, lists the losses and the repairs");
            }
            if (!isClaimed) {
                throw new LogSetupException("there is no run under the topic prefix '" + topics.prefix() + "': topics "
                        + missing + " are missing; create the run first, or correct the prefix");
            }
            SchemaRegistry registry = registry(clientProperties, config, schemaRegistryUrl, false);
            try {
                RunClaims claims = new RunClaims(clientProperties, topics, registry, config.timeoutMs());
                ClaimedRun claimed = identified.apply(claims);
                return new RunLog(connection(clientProperties, topics, claimed, config, registry), claims, claimed);
            } catch (RuntimeException e) {
                registry.close();
                throw explained(e);
            }
        }
    }

    /**
     * Whose the topics under a prefix are and what is recorded of the run, read before anything is made: all that it takes is to
     * reach the cluster and to be allowed to read the topic.
     *
     * @return empty if there is no such run yet
     * @throws LogSetupException if the cluster does not answer, or the topic cannot be read
     */
    public static Optional<ClaimedRun> look(
            Map<String, Object> clientProperties, RunTopics topics, TopicsConfig config, String schemaRegistryUrl) {
        try (TopicAdministration administration = new TopicAdministration(clientProperties, config)) {
            administration.requireReachable();
            if (administration.existing(List.of(topics.run())).isEmpty()) {
                return Optional.empty();
            }
            try (SchemaRegistry registry = registry(clientProperties, config, schemaRegistryUrl, false)) {
                return new RunClaims(clientProperties, topics, registry, config.timeoutMs()).found();
            } catch (SchemaRegistryException e) {
                throw explained(e);
            }
        }
    }

    /**
     * Whose the topics are and what is recorded of the run, by records that were read without a cluster.
     *
     * @param records committed, of the topic {@link RunTopics#run}, from its beginning
     * @return empty if they claim nothing
     */
    public static Optional<ClaimedRun> claimed(
            RunTopics topics, SchemaRegistry registry, Iterable<ConsumerRecord<byte[], byte[]>> records) {
        return new RunClaims(Map.of(), topics, registry, 0).in(records);
    }

    public LogConnection connection() {
        return connection;
    }

    /** Whether the run was there before. */
    public boolean resumed() {
        return claimed.before();
    }

    public ClaimedRun claim() {
        return claimed;
    }

    /**
     * Records another configuration of this run, for those who come later.
     *
     * @throws LogSetupException if the run has gone on to another epoch meanwhile
     */
    public void reconfigure(String configuration, Clock clock) {
        claims.reconfigure(connection.run(), configuration, clock);
    }

    /**
     * Begins the run's next epoch: fences the writers of this one and claims the next. The claim names the version it continues
     * from, and the place on the log. Its first version is still to be published.
     *
     * @return the same log at the new epoch; close one of the two
     * @throws LogSetupException if the run has gone on to another epoch meanwhile, or the cluster does not let us
     */
    public RunLog beginEpoch(EpochParent parent, TopicsConfig config, Clock clock) {
        Map<String, Object> client = connection.clientProperties();
        RunTopics topics = connection.topics();
        try (TopicAdministration administration = new TopicAdministration(client, config)) {
            administration.fence(this::isOfRole);
            Set<String> there = administration.existing(topics.all());
            there.remove(topics.run());
            ClaimedRun begun = claims.begin(
                    connection.run(), parent, administration.ends(there), place(administration, topics), clock);
            administration.fence(this::isOfRole); // who has opened another producer finds the new claim by now
            return new RunLog(
                    connection.at(begun.run(), begun.lineage(begun.run().epoch())), claims, begun);
        }
    }

    private boolean isOfRole(String transactionalId) {
        String prefix = connection.topics().prefix();
        return transactionalId.startsWith(prefix)
                && ROLES.matcher(transactionalId.substring(prefix.length())).lookingAt();
    }

    /**
     * The same whose producers take larger or smaller records, as the run's recorded configuration may say. Close one of the two.
     */
    public RunLog with(TopicsConfig config) {
        return new RunLog(connection.withClient(sized(connection.clientProperties(), config)), claims, claimed);
    }

    /** The schemas on the log, for the HTTP port to serve; empty where another registry keeps them. */
    public Optional<RegistryContents> registryContents() {
        return connection.registry() instanceof LogSchemaRegistry log ? Optional.of(log.contents()) : Optional.empty();
    }

    @Override
    public void close() {
        connection.registry().close();
    }

    /**
     * Asks a registry whether it is one, before anything is started or made that would need it.
     *
     * @param schemaRegistryUrl as for {@link #open}; empty asks nobody
     * @throws LogSetupException if it does not answer, or is none
     */
    public static void requireRegistry(TopicsConfig config, String schemaRegistryUrl) {
        if (schemaRegistryUrl.isEmpty()) {
            return;
        }
        try (RestSchemaRegistry registry = rest(config, schemaRegistryUrl, false)) {
            registry.requireAnswer();
        } catch (SchemaRegistryException | SecretException e) {
            throw new LogSetupException(
                    e.getMessage() + "; correct run.schema_registry_url, or leave it out to keep schemas on the log",
                    e);
        }
    }

    private static RestSchemaRegistry rest(TopicsConfig config, String url, boolean mayWrite) {
        return new RestSchemaRegistry(
                SecretSettings.address("run.schema_registry_url", url), mayWrite, config.timeoutMs());
    }

    static SchemaRegistry registry(
            Map<String, Object> clientProperties, TopicsConfig config, String url, boolean mayWrite) {
        try {
            if (!url.isEmpty()) {
                return rest(config, url, mayWrite);
            }
            return mayWrite
                    ? LogSchemaRegistry.writing(clientProperties, config.schemasTopic(), config.timeoutMs())
                    : LogSchemaRegistry.reading(clientProperties, config.schemasTopic(), config.timeoutMs());
        } catch (SchemaRegistryException | SecretException e) {
            throw explained(e);
        }
    }

    private static void register(SchemaRegistry registry, RunTopics topics, Set<String> partnerTopics) {
        Map<String, Schema> schemas = RunSchemas.bySubject(topics);
        topics.ofPartners().stream()
                .filter(topic -> !partnerTopics.contains(topic))
                .forEach(topic -> schemas.remove(RunSchemas.subject(topic)));
        if (registry instanceof LogSchemaRegistry log) {
            log.register(schemas);
        } else {
            schemas.forEach(registry::idOf);
        }
    }

    private static LogPlace place(TopicAdministration administration, RunTopics topics) {
        return new LogPlace(administration.clusterId(), administration.ids(administration.existing(topics.all())));
    }

    /** Refuses topics without a claim: they are foreign, or remain of a run that was deleted by half. */
    private static void refuseOrphans(TopicAdministration administration, RunTopics topics) {
        Set<String> there = administration.existing(topics.all());
        if (!there.isEmpty() && !there.contains(topics.run())) {
            throw new LogSetupException("topics " + new TreeSet<>(there) + " exist without " + topics.run()
                    + ", which names their run; delete them, or choose another topic prefix than '" + topics.prefix()
                    + "'");
        }
    }

    private static LogConnection connection(
            Map<String, Object> clientProperties,
            RunTopics topics,
            ClaimedRun claimed,
            TopicsConfig config,
            SchemaRegistry registry) {
        return new LogConnection(
                sized(clientProperties, config),
                topics,
                claimed.run(),
                claimed.lineage(claimed.run().epoch()),
                registry);
    }

    private static Map<String, Object> sized(Map<String, Object> clientProperties, TopicsConfig config) {
        Map<String, Object> properties = new HashMap<>(clientProperties);
        properties.put("max.request.size", config.maxRecordBytes());
        return properties;
    }

    private static LogSetupException explained(RuntimeException e) {
        return e instanceof LogSetupException known
                ? known
                : new LogSetupException(Objects.requireNonNullElse(e.getMessage(), e.toString()), e);
    }
}
