package dev.millrace.replay;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.replay.InputReader.Taken;
import dev.millrace.replay.TaskReplay.UnprovableReplayException;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.RunContext;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyTasks;
import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.ingress.StarvedArrival;
import dev.millrace.topology.ingress.VersionArrival;
import dev.millrace.topology.ingress.VersionDeletion;
import dev.millrace.topology.state.Observation;
import dev.millrace.topology.state.TaskEvent;
import dev.millrace.topology.task.TaskFactory;
import dev.millrace.topology.task.TopologyMeters;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.TopicPartition;

/**
 * Replays every task of a run's topology and compares the bytes.
 *
 * <p>Tasks read recorded input topics, not each other's replays, so they run in parallel with one result. Memory is
 * that of the live tasks.
 */
public final class AsRecorded {
    private final RecordedRun run;
    private final TopologyTasks tasks;
    private final RecordComparison comparison;
    private final LongAdder progress = new LongAdder();

    public AsRecorded(RecordedRun run, TopologyConfig config, Algorithm algorithm, int maxValueBytes) {
        this.run = run;
        this.tasks = new TopologyTasks(
                config,
                algorithm,
                new RunContext(
                        run.run(),
                        run.lineage(),
                        run.topics(),
                        run.registry(),
                        run::fetcher,
                        maxValueBytes,
                        new TopologyMeters(new SimpleMeterRegistry())));
        RunTopics topics = run.topics();
        this.comparison = new RecordComparison(
                run.registry(),
                Map.of(
                        topics.trajectories(),
                        Trajectory.class,
                        topics.outcomes(),
                        Outcome.class,
                        topics.batches(),
                        LearnerBatch.class));
    }

    public long passed() {
        return progress.sum();
    }

    public long toPass() {
        long sum = 0;
        for (String topic : inputTopics()) {
            for (TopicPartition partition : run.partitions(topic)) {
                sum += run.range(partition).end() - run.range(partition).from();
            }
        }
        return sum;
    }

    private List<String> inputTopics() {
        List<String> topics = new ArrayList<>();
        tasks.joinInputs().forEach(input -> topics.add(input.topic()));
        tasks.assemblyInputs().forEach(input -> topics.add(input.topic()));
        return topics;
    }

    public List<TaskVerdict> replay(int threads) throws InterruptedException {
        List<Callable<TaskVerdict>> all = new ArrayList<>();
        for (TopicPartition partition : run.partitions(run.topics().rollouts())) {
            all.add(replayOf(tasks.join(), tasks.joinInputs(), AsRecorded::nothingIsTold, partition.partition()));
        }
        for (TopicPartition partition : run.partitions(run.topics().trajectories())) {
            all.add(replayOf(tasks.assembly(), tasks.assemblyInputs(), AsRecorded::told, partition.partition()));
        }
        ExecutorService workers = Executors.newFixedThreadPool(threads, runnable -> new Thread(runnable, "replay"));
        try {
            List<TaskVerdict> verdicts = new ArrayList<>();
            for (Future<TaskVerdict> verdict : workers.invokeAll(all)) {
                verdicts.add(verdict.get());
            }
            return verdicts;
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e.getCause());
        } finally {
            workers.shutdownNow();
        }
    }

    private <A extends Observation> Callable<TaskVerdict> replayOf(
            TaskFactory<A> factory,
            List<TopologyTasks.Input<A>> inputs,
            java.util.function.Function<TaskEvent.Told, Taken<A>> told,
            int partition) {
        return () ->
                new TaskReplay<>(run, factory, inputs, told, partition, tasks.settings(), comparison, progress).run();
    }

    private static <A> Taken<A> nothingIsTold(TaskEvent.Told told) {
        throw new UnprovableReplayException(
                "a header tells of input " + told.input() + ", which the join does not have");
    }

    private static Taken<AssemblyArrival> told(TaskEvent.Told told) {
        if (told.input() == StarvedArrival.INPUT) {
            StarvedArrival starved = StarvedArrival.of(told.facts());
            return new Taken<>(starved, starved.timestampMs());
        }
        AssemblyArrival version = VersionArrival.of(told.facts());
        return new Taken<>(
                version,
                version instanceof VersionArrival published
                        ? published.timestampMs()
                        : ((VersionDeletion) version).timestampMs());
    }
}
