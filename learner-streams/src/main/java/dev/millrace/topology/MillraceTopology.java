package dev.millrace.topology;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.LogConnection;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.stages.ImportanceWeighting;
import dev.millrace.topology.batch.AssemblyNodes;
import dev.millrace.topology.batch.AssemblySettings;
import dev.millrace.topology.batch.AssemblySupplier;
import dev.millrace.topology.fetch.KafkaRecordFetcher;
import dev.millrace.topology.fetch.RecordFetcher;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.ingress.IngressProcessor;
import dev.millrace.topology.ingress.RecordReader;
import dev.millrace.topology.ingress.RolloutCheck;
import dev.millrace.topology.ingress.RolloutReader;
import dev.millrace.topology.ingress.ScoreCheck;
import dev.millrace.topology.ingress.ScoreReader;
import dev.millrace.topology.ingress.TrajectoryReader;
import dev.millrace.topology.ingress.VersionReader;
import dev.millrace.topology.join.JoinNodes;
import dev.millrace.topology.join.JoinSettings;
import dev.millrace.topology.join.JoinSupplier;
import dev.millrace.topology.meters.TopologyMeters;
import java.time.Duration;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.Topology;

/**
 * The topology from rollouts and scores to batches.
 *
 * <pre>
 *   rollouts ─> check-rollouts ─┐                ┌─> trajectories ─> check-trajectories ─┐                 ┌─> batches
 *                               ├─> join ────────┤                                       ├─> assemble ─────┤
 *   scores ───> check-scores ───┘                └─> outcomes    versions ─> check-versions ┘              └─> outcomes
 *                    whatever is refused on the way goes to dead-letters
 * </pre>
 *
 * <p>The left half has a task per partition of {@code rollouts}, the right half one per policy. Every record is
 * read as bytes, so that nothing on a topic can stop a task.
 */
public final class MillraceTopology {
    private static final Duration FETCH_PATIENCE = Duration.ofSeconds(30);
    /** What a record takes on the log beside its value: key, framing. */
    private static final int FRAMING_BYTES = 4096;
    private static final int DEFAULT_MAX_REQUEST_BYTES = 1 << 20;

    private MillraceTopology() {
    }

    /** The topology of a run on its log. */
    public static Topology build(TopologyConfig config, LogConnection connection, TopologyMeters meters) {
        return build(config, connection.run(), connection.topics(), connection.registry(),
            () -> new KafkaRecordFetcher(connection, FETCH_PATIENCE), maxRequestBytes(connection) - FRAMING_BYTES, meters);
    }

    /** Largest request that the log is set up for; the client's default where the connection says nothing. */
    static int maxRequestBytes(LogConnection connection) {
        Object configured = connection.clientProperties().get("max.request.size");
        return configured == null ? DEFAULT_MAX_REQUEST_BYTES : Integer.parseInt(configured.toString());
    }

    /**
     * The topology of a run, with another way to read records again.
     *
     * @param fetchers makes a fetcher for each task
     * @param maxValueBytes largest value that the log takes
     */
    public static Topology build(TopologyConfig config, RunIdentity run, RunTopics topics, SchemaRegistry registry,
        Supplier<RecordFetcher> fetchers, int maxValueBytes, TopologyMeters meters) {
        RecordReader<Arrival> rollouts =
            new RolloutReader(topics.rollouts(), registry, new RolloutCheck(run, config.ingress()));
        RecordReader<Arrival> scores =
            new ScoreReader(topics.scores(), registry, new ScoreCheck(run, topics.rollouts(), config.ingress()));
        RecordReader<AssemblyArrival> trajectories =
            new TrajectoryReader(topics.trajectories(), registry, run, config.ingress());
        RecordReader<AssemblyArrival> versions = new VersionReader(topics.policyVersions(), registry, run);

        Topology topology = new Topology();
        source(topology, "rollouts", topics.rollouts());
        source(topology, "scores", topics.scores());
        topology.addProcessor(
            "check-rollouts", () -> new IngressProcessor<>(rollouts, "join", "dead-letters", meters), "rollouts");
        topology.addProcessor("check-scores", () -> new IngressProcessor<>(scores, "join", "dead-letters", meters), "scores");
        topology.addProcessor("join", new JoinSupplier(
            new JoinSettings(config.join(), run, topics, rollouts, scores, fetchers,
                new ImportanceWeighting(config.corrections().rolloutCorrection()), AvroSerde.of(Trajectory.class, registry).serializer(),
                maxValueBytes, meters),
            new JoinNodes("trajectories", "outcomes", "dead-letters"), config.runtime().stateStores()),
            "check-rollouts", "check-scores");
        topology.addSink("trajectories", topics.trajectories(), new StringSerializer(), new ByteArraySerializer(),
            new PolicyPartition(run.policyId()), "join");
        topology.addSink("outcomes", topics.outcomes(), new StringSerializer(),
            AvroSerde.of(Outcome.class, registry).serializer(), "join");
        topology.addSink("dead-letters", topics.deadLetters(), new ByteArraySerializer(), new ByteArraySerializer(),
            "check-rollouts", "check-scores", "join");

        source(topology, "assembled-trajectories", topics.trajectories());
        source(topology, "versions", topics.policyVersions());
        topology.addProcessor("check-trajectories",
            () -> new IngressProcessor<>(trajectories, "assemble", "assembly-dead-letters", meters), "assembled-trajectories");
        topology.addProcessor("check-versions",
            () -> new IngressProcessor<>(versions, "assemble", "assembly-dead-letters", meters), "versions");
        topology.addProcessor("assemble", new AssemblySupplier(
            new AssemblySettings(config.groups(), config.batch(), config.corrections(), run, topics, trajectories, fetchers,
                AvroSerde.of(LearnerBatch.class, registry).serializer(), maxValueBytes, meters),
            new AssemblyNodes("batches", "assembly-outcomes", "assembly-dead-letters"), config.runtime().stateStores()),
            "check-trajectories", "check-versions");
        topology.addSink("batches", topics.batches(), new StringSerializer(), new ByteArraySerializer(),
            new PolicyPartition(run.policyId()), "assemble");
        topology.addSink("assembly-outcomes", topics.outcomes(), new StringSerializer(),
            AvroSerde.of(Outcome.class, registry).serializer(), "assemble");
        topology.addSink("assembly-dead-letters", topics.deadLetters(), new ByteArraySerializer(), new ByteArraySerializer(),
            "check-trajectories", "check-versions", "assemble");
        return topology;
    }

    private static void source(Topology topology, String name, String topic) {
        topology.addSource(name, new ByteArrayDeserializer(), new ByteArrayDeserializer(), topic);
    }
}
