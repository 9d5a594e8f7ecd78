package dev.millrace.workloads.topology;

import dev.millrace.log.run.TopicsConfig;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.TopicWatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Measures what an instance holds when rollouts come and the learner takes none of them: live heap and state on disk.
 *
 * <p>An instance in a process with a bounded heap reads a backlog while no version is ever published after the first
 * batches. With {@code max_outstanding = 0} batches are cut all the same and wait on the log; with a limit, groups wait in
 * the assembly.
 */
public final class BacklogMemory {
    private static final long SEED = 17;
    private static final int NEWEST_VERSION = 8;
    private static final Duration LIMIT = Duration.ofMinutes(10);

    private final String bootstrapServers;
    private final TopicsConfig topics;
    private final Path scratch;

    public BacklogMemory(String bootstrapServers, TopicsConfig topics, Path scratch) {
        this.bootstrapServers = bootstrapServers;
        this.topics = topics;
        this.scratch = scratch;
    }

    /**
     * What was seen.
     *
     * @param maxOutstanding batches that the topology may be ahead of the learner; 0 for no limit
     * @param survived whether the instance was still running when all was read
     * @param lastWords what it said last if it did not
     * @param liveHeapBytes after a full collection; 0 if it did not survive
     */
    public record Result(
            long rollouts,
            int responseTokens,
            int maxOutstanding,
            int heapLimitMegabytes,
            boolean survived,
            String lastWords,
            long liveHeapBytes,
            long stateBytes) {}

    /** Has an instance read a backlog of whole groups. */
    public Result measure(int rollouts, int responseTokens, int maxOutstanding, int heapMegabytes)
            throws InterruptedException {
        String name = "memory-" + maxOutstanding;
        Path state = scratch.resolve(name);
        AtomicLong trajectories = new AtomicLong();
        AtomicLong lastOffset = new AtomicLong();
        try (SyntheticRun run = new SyntheticRun(
                Map.of("bootstrap.servers", bootstrapServers),
                name,
                topics,
                RolloutShape.defaults().withResponseTokens(responseTokens),
                SEED,
                "lz4")) {
            run.publishVersions(NEWEST_VERSION, System.currentTimeMillis() - 3_600_000);
            Backlog backlog = Backlog.publish(run, 0, rollouts, NEWEST_VERSION);
            try (InstanceProcess instance = InstanceProcess.start(
                            bootstrapServers,
                            name,
                            state,
                            "one",
                            heapMegabytes,
                            TopologyConfig.defaults()
                                    .with(new BatchConfig(256, 0, BatchConfig.Order.COMPLETION, maxOutstanding, false)),
                            AlgorithmPlan.defaults(),
                            topics);
                    TopicWatch watch = new TopicWatch(
                            run.connection(), run.connection().topics().trajectories(), trajectory -> {
                                lastOffset.set(trajectory.offset());
                                trajectories.incrementAndGet();
                            });
                    Admin admin = Admin.create(run.connection().admin())) {
                BoundedWait.await("trajectories of " + rollouts + " rollouts", LIMIT, () -> {
                    watch.requireAllToCome();
                    return trajectories.get() >= rollouts || !instance.isAlive();
                });
                TopicPartition read =
                        new TopicPartition(run.connection().topics().trajectories(), 0);
                BoundedWait.await(
                        "the assembly to have read them",
                        LIMIT,
                        () -> !instance.isAlive()
                                || committed(admin, run.connection().group("topology"), read) > lastOffset.get());
                boolean survived = instance.isAlive();
                Result result = new Result(
                        backlog.rollouts(),
                        responseTokens,
                        maxOutstanding,
                        heapMegabytes,
                        survived,
                        survived ? "" : instance.lastWords(),
                        survived ? instance.heapBytes() : 0,
                        bytesUnder(state));
                if (survived) {
                    instance.stop();
                }
                run.delete();
                return result;
            }
        }
    }

    /** The next offset that a group reads; 0 if it has not committed any. */
    private static long committed(Admin admin, String group, TopicPartition partition) {
        try {
            OffsetAndMetadata offset = admin.listConsumerGroupOffsets(group)
                    .partitionsToOffsetAndMetadata()
                    .get()
                    .get(partition);
            return offset == null ? 0 : offset.offset();
        } catch (ExecutionException e) {
            throw new LoadException(
                    "the progress of " + group + " cannot be asked for: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    Objects.requireNonNullElse(e.getCause(), e));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LoadException("interrupted while a backlog is read", e);
        }
    }

    private static long bytesUnder(Path directory) {
        if (!Files.exists(directory)) {
            return 0; // it ended before it kept anything
        }
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(Files::isRegularFile)
                    .mapToLong(file -> file.toFile().length())
                    .sum();
        } catch (IOException e) {
            throw new LoadException("the state in " + directory + " cannot be measured: " + e.getMessage(), e);
        }
    }
}
