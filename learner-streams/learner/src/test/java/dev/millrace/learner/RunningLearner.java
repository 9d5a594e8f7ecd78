package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.log.Alarm;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.session.Engine;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Clock;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.KafkaException;

/** A learner with a short patience on its own thread, and its alarms. */
final class RunningLearner implements AutoCloseable {
    private static final long LIMIT_SECONDS = 300;

    private final SyntheticLog log;
    private final LogConnection connection;
    private final MeterRegistry registry = new SimpleMeterRegistry();
    private final Learner learner;
    private final CompletableFuture<Void> end;

    private RunningLearner(SyntheticLog log, LearnerConfig config, WeightsConfig weights, Duration patience) {
        this.log = log;
        this.connection = log.connection().withPatience(patience);
        this.learner = learner(connection, config, weights, registry);
        this.end = CompletableFuture.runAsync(learner::run);
    }

    static RunningLearner start(SyntheticLog log) {
        return start(log, LearnerIT.config(0), LearnerIT.weights());
    }

    static RunningLearner start(SyntheticLog log, LearnerConfig config, WeightsConfig weights) {
        return new RunningLearner(log, config, weights, Duration.ofSeconds(1));
    }

    /** One that waits for a broker that is away. */
    static RunningLearner startPatient(SyntheticLog log) {
        return new RunningLearner(log, LearnerIT.config(0), LearnerIT.weights(), Duration.ofSeconds(LIMIT_SECONDS));
    }

    /** Trains on this thread until there is this version. */
    static void toVersion(SyntheticLog log, int version) {
        try (Learner learner =
                learner(log.connection(), LearnerIT.config(version), LearnerIT.weights(), new SimpleMeterRegistry())) {
            learner.run();
        }
    }

    /** Trains on this thread until this number of batches is consumed. */
    static void whenConsumed(SyntheticLog log, int batches) {
        whenConsumed(log, batches, LearnerIT.weights());
    }

    static void whenConsumed(SyntheticLog log, int batches, WeightsConfig weights) {
        whenConsumed(log, batches, LearnerIT.config(0), weights);
    }

    static void whenConsumed(SyntheticLog log, int batches, LearnerConfig config, WeightsConfig weights) {
        whenConsumed(log, batches, config, weights, new AtomicInteger(), VersionCommitter.Producers.kafka());
    }

    /** As {@link #whenConsumed}, and writes nothing after the last of them, as if it was killed. */
    static void killedWhenConsumed(SyntheticLog log, int batches, WeightsConfig weights) {
        killedWhenConsumed(log, batches, LearnerIT.config(0), weights);
    }

    static void killedWhenConsumed(SyntheticLog log, int batches, LearnerConfig config, WeightsConfig weights) {
        AtomicInteger left = new AtomicInteger(Integer.MAX_VALUE);
        whenConsumed(
                log,
                batches,
                config,
                weights,
                left,
                properties -> mortal(VersionCommitter.Producers.kafka().create(properties), left));
    }

    /** @param left is set to 1 before the last transaction */
    private static void whenConsumed(
            SyntheticLog log,
            int batches,
            LearnerConfig config,
            WeightsConfig weights,
            AtomicInteger left,
            VersionCommitter.Producers producers) {
        try (Learner learner = learner(log.connection(), config, weights, new SimpleMeterRegistry(), producers)) {
            learner.observe(step -> {
                if (step.batchId() == batches - 1) {
                    left.set(1);
                    learner.stop();
                }
            });
            learner.run();
        }
    }

    /** Returns a producer that fails after {@code left} begun transactions. */
    @SuppressWarnings("unchecked")
    private static Producer<byte[], byte[]> mortal(Producer<byte[], byte[]> producer, AtomicInteger left) {
        return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
                RunningLearner.class.getClassLoader(), new Class<?>[] {Producer.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("beginTransaction") && left.getAndDecrement() <= 0) {
                        throw new KafkaException("it is dead");
                    }
                    try {
                        return method.invoke(producer, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    private static Learner learner(
            LogConnection connection, LearnerConfig config, WeightsConfig weights, MeterRegistry registry) {
        return learner(connection, config, weights, registry, VersionCommitter.Producers.kafka());
    }

    private static Learner learner(
            LogConnection connection,
            LearnerConfig config,
            WeightsConfig weights,
            MeterRegistry registry,
            VersionCommitter.Producers producers) {
        return new Learner(
                new LearnerContext(
                        connection,
                        config,
                        weights,
                        InitialPolicy.random(
                                SyntheticRollouts.SHAPE, SyntheticRollouts.TOKENIZER_HASH, SyntheticRollouts.SEED),
                        registry,
                        Clock.systemUTC(),
                        producers),
                Algorithm.defaults().with(a -> a.mode(Mode.RECORDED)),
                Engine.cpu());
    }

    void awaitVersion(long version) {
        await(() -> !log.versions().isEmpty()
                && log.versions().stream().anyMatch(manifest -> manifest.getVersion() == version));
    }

    /** Until this offset of {@code batches} is committed. */
    void awaitOffset(long offset) {
        await(() -> log.committedOffset() == offset);
    }

    Alarm awaitAlarm(String name) {
        await(() -> alarm(name).isPresent());
        return alarm(name).orElseThrow();
    }

    void awaitNoAlarm(String name) {
        await(() -> alarm(name).isEmpty());
    }

    private Optional<Alarm> alarm(String name) {
        return connection.alarms().active().stream()
                .filter(alarm -> alarm.name().equals(name))
                .findFirst();
    }

    private void await(BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        for (long looked = System.nanoTime(); !condition.getAsBoolean(); looked = System.nanoTime()) {
            if (end.isDone()) {
                end.join();
            }
            assertThat(end).as("the learner runs").isNotDone();
            assertThat(System.nanoTime()).as("waited for %s s", LIMIT_SECONDS).isLessThan(deadline);
            // most of the time is the learner's: a look reads a whole topic
            LockSupport.parkNanos(Math.max(5_000_000, 2 * (System.nanoTime() - looked)));
        }
    }

    /** Ends the learner cleanly; rethrows the error that ended it before. */
    @Override
    public void close() {
        learner.stop();
        try {
            end.orTimeout(LIMIT_SECONDS, TimeUnit.SECONDS).join();
        } finally {
            learner.close();
        }
    }
}
