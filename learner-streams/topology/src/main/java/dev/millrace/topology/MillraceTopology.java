package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.run.TopicSettings;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.TopologyTasks.Input;
import dev.millrace.topology.batch.AssemblyTask;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.IngressProcessor;
import dev.millrace.topology.ingress.QuarantineGate;
import dev.millrace.topology.join.JoinTask;
import dev.millrace.topology.state.RecordTimestampExtractor;
import dev.millrace.topology.state.StateStores;
import dev.millrace.topology.task.PromptCommit;
import dev.millrace.topology.task.TaskSupplier;
import dev.millrace.topology.task.TopologyMeters;
import dev.millrace.topology.task.WaitBoard;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.AutoOffsetReset;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.StreamPartitioner;

/**
 * The topology from rollouts and scores to batches.
 *
 * <pre>
 *   rollouts ─> check-rollouts ─┐                ┌─> trajectories ─> check-trajectories ─┐                 ┌─> batches
 *                               ├─> join ────────┤                                       ├─> assemble ─────┤
 *   scores ───> check-scores ───┘                └─> outcomes    versions ─> check-versions ┘              └─> outcomes
 *                                                        training-log ─> check-steps ┘
 * (rewards, reference-scores and teacher-scores likewise, where they are configured)
 *                    every refused record goes to dead-letters
 * </pre>
 *
 * <p>The left half has a task per partition of {@code rollouts}, the right half one per policy. Every record is
 * read as bytes, so that nothing on a topic can stop a task.
 */
public final class MillraceTopology {
    /** Bytes of a record on the log in addition to its value: key, framing, and headers with what its task had seen. */
    private static final int FRAMING_BYTES = 8192;

    private static final int DEFAULT_MAX_REQUEST_BYTES = 1 << 20;

    private static final String JOIN_JOURNAL = "join-journal";
    private static final String ASSEMBLY_JOURNAL = "assembly-journal";

    private MillraceTopology() {}

    /** @param quarantines already opened, if no record may pass before they are read */
    static Topology build(TopologyConfig config, Algorithm algorithm, RunContext context, Quarantines quarantines) {
        return add(new Topology(), config, algorithm, context, quarantines);
    }

    /**
     * Adds the topology of a run to a program's own builder and returns one topology to run.
     *
     * <p>Its sources have their own serdes and {@link RecordTimestampExtractor}, so the program may set any defaults
     * for these. The program must not reuse the names of nodes and stores here. It must also not read the topics that
     * are read here ({@code rollouts}, {@code scores}, {@code trajectories}, {@code policy-versions},
     * {@code training-log} and the configured partners), because the engine reads a topic once. It may read
     * {@code batches} and {@code outcomes}. Run the topology with {@link #settings}.
     *
     * <p>A separate thread reads the quarantines from the start on. Records that arrive before it has read them, in the
     * first tens of milliseconds, pass. Without a log, as in a {@code TopologyTestDriver}, there are no quarantines.
     *
     * @param builder built by this call; must not be changed afterwards
     */
    public static Topology addTo(
            StreamsBuilder builder,
            TopologyConfig config,
            Algorithm algorithm,
            LogConnection connection,
            TopologyMeters meters) {
        return add(builder.build(), config, algorithm, RunContext.of(connection, meters), Quarantines.of(connection));
    }

    /**
     * Settings of an engine that runs the topology: exactly once, committed and sized as configured, under the run's
     * own application id. A program may add to them, and changes them at its own risk.
     *
     * @param stateDirectory used only by this instance; it keeps the instance's name if none is configured
     */
    public static Properties settings(TopologyConfig config, LogConnection connection, Path stateDirectory) {
        RuntimeConfig runtime = config.runtime();
        String name = InstanceName.of(runtime.instanceId(), stateDirectory);
        return StreamsProperties.of(runtime, connection, stateDirectory, StreamsConfig.EXACTLY_ONCE_V2, name);
    }

    /**
     * Returns the topics in which the engine keeps the topology's state, as the engine creates them. It creates no others.
     *
     * @param partitions of the rollouts
     */
    public static List<TopicSettings> changelogs(RunTopics topics, int epoch, int partitions) {
        String application = topics.group("topology", epoch);
        return List.of(
                changelog(application, JoinTask.PENDING, partitions),
                changelog(application, JoinTask.SEEN, partitions),
                changelog(application, JOIN_JOURNAL, partitions),
                changelog(application, AssemblyTask.STORE, 1),
                changelog(application, ASSEMBLY_JOURNAL, 1));
    }

    private static TopicSettings changelog(String application, String store, int partitions) {
        Map<String, String> settings = new HashMap<>(StateStores.CHANGELOG);
        settings.put(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_COMPACT);
        return new TopicSettings(application + "-" + store + "-changelog", partitions, settings);
    }

    /** Returns the topics that the topology reads. */
    static Set<String> inputs(TopologyConfig config, RunTopics topics) {
        Set<String> inputs = joined(config, topics);
        inputs.addAll(List.of(topics.trajectories(), topics.policyVersions(), topics.trainingLog()));
        return inputs;
    }

    /** Returns the topics that trajectories are joined from. */
    static Set<String> joined(TopologyConfig config, RunTopics topics) {
        Set<String> joined = new HashSet<>(config.join().partnerTopics(topics));
        joined.addAll(List.of(topics.rollouts(), topics.scores()));
        return joined;
    }

    /** Largest value of a record that the log is set up for. */
    public static int maxValueBytes(LogConnection connection) {
        return maxValueBytes(maxRequestBytes(connection));
    }

    /** Returns the largest value of a record for a maximum request size. */
    public static int maxValueBytes(int maxRequestBytes) {
        return maxRequestBytes - FRAMING_BYTES;
    }

    /** Largest request that the log is set up for; the client's default where the connection says nothing. */
    static int maxRequestBytes(LogConnection connection) {
        Object configured = connection.producer(Map.of()).get("max.request.size");
        return configured == null ? DEFAULT_MAX_REQUEST_BYTES : Integer.parseInt(configured.toString());
    }

    private static Topology add(
            Topology topology,
            TopologyConfig config,
            Algorithm algorithm,
            RunContext context,
            Quarantines quarantines) {
        TopologyTasks tasks = new TopologyTasks(config, algorithm, context);
        RunTopics topics = context.topics();
        WaitBoard waits = context.meters().waits();
        ThreadLocal<PromptCommit> commits =
                ThreadLocal.withInitial(() -> new PromptCommit(config.runtime().commitIntervalMs()));
        StateStores.Kind stores = config.runtime().stateStores();

        List<String> arrivals = checked(
                topology,
                tasks.joinInputs().stream()
                        .map(input -> gated(input, quarantines, context))
                        .toList(),
                "join",
                "dead-letters",
                context);
        topology.addProcessor(
                "join",
                new TaskSupplier<>(
                        tasks.join(),
                        JOIN_JOURNAL,
                        tasks.settings(),
                        Map.of(
                                topics.trajectories(),
                                "trajectories",
                                topics.outcomes(),
                                "outcomes",
                                topics.deadLetters(),
                                "dead-letters"),
                        stores,
                        waits,
                        commits),
                arrivals.toArray(String[]::new));
        toPolicy(topology, "trajectories", topics.trajectories(), context.run(), "join");
        sink(topology, "outcomes", topics.outcomes(), List.of("join"));
        sink(topology, "dead-letters", topics.deadLetters(), and(arrivals, "join"));

        List<String> members = checked(topology, tasks.assemblyInputs(), "assemble", "assembly-dead-letters", context);
        topology.addProcessor(
                "assemble",
                new TaskSupplier<>(
                        tasks.assembly(),
                        ASSEMBLY_JOURNAL,
                        tasks.settings(),
                        Map.of(
                                topics.batches(),
                                "batches",
                                topics.outcomes(),
                                "assembly-outcomes",
                                topics.deadLetters(),
                                "assembly-dead-letters"),
                        stores,
                        waits,
                        commits),
                members.toArray(String[]::new));
        toPolicy(topology, "batches", topics.batches(), context.run(), "assemble");
        sink(topology, "assembly-outcomes", topics.outcomes(), List.of("assemble"));
        sink(topology, "assembly-dead-letters", topics.deadLetters(), and(members, "assemble"));
        return topology;
    }

    /** The same input, with a gate before it if it is the rollouts'. */
    private static Input<Arrival> gated(Input<Arrival> input, Quarantines quarantines, RunContext context) {
        if (!input.topic().equals(context.topics().rollouts())) {
            return input;
        }
        var rollouts = AvroSerde.of(Rollout.class, context.registry()).deserializer();
        return new Input<>(
                input.number(),
                input.topic(),
                new QuarantineGate(input.reader(), quarantines, rollouts, context.run()));
    }

    /** Sources and checks of a kind of task; the names of the checks. */
    private static <A> List<String> checked(
            Topology topology, List<Input<A>> inputs, String next, String deadLetters, RunContext context) {
        List<String> checks = new ArrayList<>();
        for (Input<A> input : inputs) {
            String source = "read-" + input.topic() + "-for-" + next;
            String check = "check-" + input.topic() + "-for-" + next;
            topology.addSource(
                    AutoOffsetReset.earliest(), // nothing of a run may be passed over
                    source,
                    new RecordTimestampExtractor(),
                    new ByteArrayDeserializer(),
                    new ByteArrayDeserializer(),
                    input.topic());
            topology.addProcessor(
                    check,
                    () -> new IngressProcessor<>(
                            input.reader(), next, deadLetters, context.meters(), context.run(), context.lineage()),
                    source);
            checks.add(check);
        }
        return checks;
    }

    private static List<String> and(List<String> names, String last) {
        List<String> all = new ArrayList<>(names);
        all.add(last);
        return all;
    }

    private static void sink(Topology topology, String name, String topic, List<String> parents) {
        topology.addSink(
                name, topic, new ByteArraySerializer(), new ByteArraySerializer(), parents.toArray(String[]::new));
    }

    private static void toPolicy(Topology topology, String name, String topic, RunIdentity run, String parent) {
        topology.addSink(
                name,
                topic,
                new ByteArraySerializer(),
                new ByteArraySerializer(),
                policyPartitioner(run.policyId()),
                parent);
    }

    /** Sends everything to the one partition that belongs to a policy: {@code murmur2(policy id) mod partitions}. */
    @SuppressWarnings(
            "removal") // 4.4 deprecates the one method that is abstract; its successor, with headers, calls it
    private static StreamPartitioner<byte[], byte[]> policyPartitioner(String policyId) {
        int hash = Utils.toPositive(Utils.murmur2(policyId.getBytes(StandardCharsets.UTF_8)));
        return (topic, key, value, partitions) -> Optional.of(Set.of(hash % partitions));
    }
}
