package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.rollout.RolloutValidator;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.batch.AssemblyTask;
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
import dev.millrace.topology.join.JoinTask;
import dev.millrace.topology.task.TaskFactory;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * What a run's topology decides by: the readers of its inputs and its two kinds of task. The stream engine runs them
 * live; a replay runs the same ones over what was recorded. Immutable and thread-safe.
 */
public final class TopologyTasks {
    /**
     * One input of a kind of task.
     *
     * @param number of the input in the task's observations and journal
     */
    public record Input<A>(int number, String topic, RecordReader<A> reader) {}

    private final List<Input<Arrival>> joinInputs;
    private final List<Input<AssemblyArrival>> assemblyInputs;
    private final TaskFactory<Arrival> join;
    private final TaskFactory<AssemblyArrival> assembly;
    private final CanonicalSettings settings;

    /** @param algorithm what is decided by */
    public TopologyTasks(TopologyConfig config, Algorithm algorithm, RunContext context) {
        RunTopics topics = context.topics();
        SchemaRegistry registry = context.registry();
        RunIdentity run = context.run();
        Map<JoinSide, RecordReader<Arrival>> joined = joined(config, context);
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
        join = new TaskFactory<>(
                "join",
                Set.of(JoinTask.PENDING, JoinTask.SEEN),
                List.of(topics.trajectories(), topics.outcomes(), topics.deadLetters()),
                Optional.empty(),
                config.join().maxGapMs(),
                (partition, stores, sink) ->
                        new JoinTask(config.join(), algorithm, context, joined, partition, stores, sink));
        assembly = new TaskFactory<>(
                "assembly",
                Set.of(AssemblyTask.STORE),
                List.of(topics.batches(), topics.outcomes(), topics.deadLetters()),
                Optional.of(topics.batches()),
                config.groups().maxGapMs(),
                (partition, stores, sink) -> new AssemblyTask(
                        config, algorithm, context, trajectories, partition, stores.apply(AssemblyTask.STORE), sink));
        settings = TopologySettings.of(config, algorithm, context.maxValueBytes());
    }

    /** Readers of what is joined: rollouts, and the partners that are configured, in the order of their kinds. */
    private static Map<JoinSide, RecordReader<Arrival>> joined(TopologyConfig config, RunContext context) {
        SchemaRegistry registry = context.registry();
        RunIdentity run = context.run();
        String rollouts = context.topics().rollouts();
        Map<JoinSide, RecordReader<Arrival>> readers = new EnumMap<>(JoinSide.class);
        readers.put(
                JoinSide.ROLLOUT,
                new RolloutReader(
                        rollouts,
                        registry,
                        new RolloutValidator(run, config.ingress().limits())));
        for (JoinSide kind : config.join().partners()) {
            String topic = kind.topic(context.topics());
            readers.put(
                    kind,
                    kind == JoinSide.REWARD
                            ? new RewardReader(topic, registry, run, rollouts, config.ingress())
                            : new ScoreReader(
                                    kind, topic, registry, new ScoreCheck(kind, run, rollouts, config.ingress())));
        }
        return readers;
    }

    /** Returns the rollouts and all their configured partners. */
    public List<Input<Arrival>> joinInputs() {
        return joinInputs;
    }

    /** Returns the trajectories, versions and the training log. */
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
