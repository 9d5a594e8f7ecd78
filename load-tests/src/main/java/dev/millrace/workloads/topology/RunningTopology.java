package dev.millrace.workloads.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.LogConnection;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BoundedWait;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

public final class RunningTopology implements AutoCloseable {
    private static final Duration START = Duration.ofMinutes(5);

    private final List<TopologyRunner> runners = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicReference<RuntimeException> failure = new AtomicReference<>();

    /**
     * Starts all instances.
     *
     * @param config with threads per instance
     * @param state their directory, new
     */
    public RunningTopology(
            TopologyConfig config, AlgorithmPlan algorithm, LogConnection connection, Path state, int instances) {
        this(config, algorithm, connection, state, instances, TopologyRunner::new);
    }

    /** {@code TopologyRunner::new} or {@code TopologyRunner::atLeastOnce}. */
    @FunctionalInterface
    public interface Maker {
        TopologyRunner make(
                TopologyConfig config,
                Algorithm algorithm,
                LogConnection connection,
                Path state,
                MeterRegistry registry);
    }

    public RunningTopology(
            TopologyConfig config,
            AlgorithmPlan algorithm,
            LogConnection connection,
            Path state,
            int instances,
            Maker maker) {
        for (int i = 0; i < instances; i++) {
            TopologyRunner runner = maker.make(
                    config.with(config.runtime().with(config.runtime().threads(), "instance-" + i)),
                    algorithm.algorithm(),
                    connection,
                    state.resolve("instance-" + i),
                    new SimpleMeterRegistry());
            Thread thread = new Thread(() -> run(runner), "topology instance " + i);
            runners.add(runner);
            threads.add(thread);
        }
        threads.forEach(Thread::start);
    }

    private void run(TopologyRunner runner) {
        try {
            runner.run();
        } catch (RuntimeException e) {
            failure.compareAndSet(null, e);
        }
    }

    public void awaitRunning() throws InterruptedException {
        BoundedWait.await("the topology to run", START, () -> {
            requireRunning();
            return runners.stream().anyMatch(TopologyRunner::isRunning);
        });
    }

    public void awaitAllRunning() throws InterruptedException {
        BoundedWait.await("all instances of the topology to run", START, () -> {
            requireRunning();
            return runners.stream().allMatch(TopologyRunner::isRunning);
        });
    }

    public void requireRunning() {
        if (failure.get() != null) {
            throw new LoadException(
                    "the topology failed under load: " + failure.get().getMessage(), failure.get());
        }
    }

    @Override
    public void close() {
        runners.forEach(TopologyRunner::stop);
        threads.forEach(BoundedWait::join);
    }
}
