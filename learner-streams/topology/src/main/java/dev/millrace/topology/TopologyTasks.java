package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.rollout.RolloutValidator;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.batch.AssemblySettings;
import dev.millrace.topology.batch.AssemblyTasks;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.RecordReader;
import dev.millrace.topology.ingress.RewardReader;
import dev.millrace.topology.ingress.RolloutReader;
import dev.millrace.topology.ingress.ScoreCheck;
import dev.millrace.topology.ingress.ScoreReader;
import dev.millrace.topology.ingress.StarvedArrival;
import dev.millrace.topology.ingress.StepRecordReader;
import dev.millrace.topology.ingress.TrajectoryReader;
import dev.millrace.topology.ingress.VersionArrival;
import dev.millrace.topology.ingress.VersionRecordReader;
import dev.millrace.topology.join.JoinSettings;
import dev.millrace.topology.join.JoinTasks;
import dev.millrace.topology.task.TaskFactory;
import dev.millrace.topology.task.TopologyMeters;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * What a run's topology decides by: the readers of its inputs and its two kinds of task. The stream engine runs them
 * live; a replay runs the same ones over what was recorded. Immutable and thread-safe.
 */
public final class TopologyTasks {
    /**
     * One input of a kind of task.
     *
     * @param number by which the task's observations and journal name it
     */
    public record Input<A>(int number, String topic, RecordReader<A> reader) {}

    private final List<Input<Arrival>> joinInputs;
    private final List<Input<AssemblyArrival>> assemblyInputs;
    private final TaskFactory<Arrival> join;
    private final TaskFactory<AssemblyArrival> assembly;
    private final CanonicalSettings settings;

    /**
     * @param algorithm what is decided by
     * @param lineage where the run's epoch comes from
     * @param fetchers makes a fetcher for each task
     * @param maxValueBytes largest value that the log takes
     */
    public TopologyTasks(
            TopologyConfig config,
            Algorithm algorithm,
            RunIdentity run,
            EpochLineage lineage,
            RunTopics topics,
            SchemaRegistry registry,
            Supplier<RecordFetcher> fetchers,
            int maxValueBytes,
            TopologyMeters meters) {
        Map<JoinSide, RecordReader<Arrival>> joined = joined(config, run, topics, registry);
        RecordReader<AssemblyArrival> trajectories =
                new TrajectoryReader(topics.trajectories(), registry, run, config.ingress());
        joinInputs = joined.entrySet().stream()
                .map(input ->
                        new Input<>(input.getKey().ordinal(), input.getKey().topic(topics), input.getValue()))
                .toList();
        assemblyInputs = List.of(
                new Input<>(0, topics.trajectories(), trajectories),
                new Input<>(
                        VersionArrival.INPUT,
                        topics.policyVersions(),
                        new VersionRecordReader(topics.policyVersions(), registry, run)),
                new Input<>(
                        StarvedArrival.INPUT,
                        topics.trainingLog(),
                        new StepRecordReader(topics.trainingLog(), registry, run)));
        join = new JoinTasks(new JoinSettings(
                config.join(),
                run,
                topics,
                joined,
                fetchers,
                algorithm.missingOldLogProbs(),
                algorithm.inputs(),
                AvroSerde.of(Trajectory.class, registry).serializer(),
                AvroSerde.of(Outcome.class, registry).serializer(),
                maxValueBytes,
                meters));
        assembly = new AssemblyTasks(new AssemblySettings(
                config.groups(),
                config.batch(),
                algorithm,
                run,
                lineage,
                topics,
                trajectories,
                fetchers,
                AvroSerde.of(LearnerBatch.class, registry).serializer(),
                AvroSerde.of(Outcome.class, registry).serializer(),
                config.runtime().memberCacheBytes(),
                maxValueBytes,
                meters));
        settings = TopologySettings.of(config, algorithm, maxValueBytes);
    }

    /** Readers of what is joined: rollouts, and the partners that are configured, in the order of their kinds. */
    private static Map<JoinSide, RecordReader<Arrival>> joined(
            TopologyConfig config, RunIdentity run, RunTopics topics, SchemaRegistry registry) {
        Map<JoinSide, RecordReader<Arrival>> readers = new EnumMap<>(JoinSide.class);
        readers.put(
                JoinSide.ROLLOUT,
                new RolloutReader(
                        topics.rollouts(),
                        registry,
                        new RolloutValidator(run, config.ingress().limits())));
        for (JoinSide kind : config.join().partners()) {
            String topic = kind.topic(topics);
            readers.put(
                    kind,
                    kind == JoinSide.REWARD
                            ? new RewardReader(topic, registry, run, topics.rollouts(), config.ingress())
                            : new ScoreReader(
                                    kind,
                                    topic,
                                    registry,
                                    new ScoreCheck(kind, run, topics.rollouts(), config.ingress())));
        }
        return readers;
    }

    /** Rollouts, and whatever is joined to them. */
    public List<Input<Arrival>> joinInputs() {
        return joinInputs;
    }

    /** Trajectories, versions and the training log. */
    public List<Input<AssemblyArrival>> assemblyInputs() {
        return assemblyInputs;
    }

    /** One for each partition of the rollouts. */
    public TaskFactory<Arrival> join() {
        return join;
    }

    /** One for each policy. */
    public TaskFactory<AssemblyArrival> assembly() {
        return assembly;
    }

    /** All settings that decisions depend on. */
    public CanonicalSettings settings() {
        return settings;
    }
}
