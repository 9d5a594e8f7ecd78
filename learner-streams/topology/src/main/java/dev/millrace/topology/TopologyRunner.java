package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Patience;
import dev.millrace.log.PatienceOverException;
import dev.millrace.log.Pulse;
import dev.millrace.log.RetriableFailures;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.run.RootCause;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.transaction.TakenOverException;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.topology.task.InputWaits;
import dev.millrace.topology.task.LogStalls;
import dev.millrace.topology.task.StallAlarms;
import dev.millrace.topology.task.TopologyMeters;
import dev.millrace.topology.task.Wait;
import dev.millrace.topology.task.WaitBoard;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.kafka.KafkaStreamsMetrics;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import io.micrometer.core.instrument.config.MeterFilter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.MissingSourceTopicException;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs one instance of the topology with exactly-once processing until it is stopped or fails. Any number of instances share
 * the partitions. An object runs once.
 *
 * <p>Kafka Streams survives lost brokers and moved partitions. A thread that fails for a reason that may pass is replaced, within
 * the run's patience. If the instance is fenced although no other process took its name, the engine restarts. Any other
 * failure stops the instance with a sentence. A stop commits finished work and leaves the group, so others take over at once.
 *
 * <p>Checks every second what stages wait for; too long a wait without progress raises an alarm ({@link StallAlarms}).
 */
public final class TopologyRunner implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(TopologyRunner.class);
    private static final long LOOK_PERIOD_MS = 1_000;
    /** Longest time between two polls of a live thread. */
    private static final Duration LONGEST_TURN = Duration.ofSeconds(60);
    /** Checks in state RUNNING after which a replaced thread counts as recovered. */
    private static final int LOOKS_OF_SUCCESS = 10;

    private final TopologyConfig config;
    private final Algorithm algorithm;
    private final LogConnection connection;
    private final Path stateDirectory;
    private final TopologyMeters meters;
    private volatile @Nullable KafkaStreams engine;
    /** Owner of the instance's name; null in a streams group. */
    private volatile @Nullable InstanceOwner owner;

    private final MeterRegistry registry;
    private final WaitBoard waits;
    private final StallAlarms alarms;
    private final Pulse pulse;
    private final String guarantee;
    /** End of the current engine; the end of the runner is {@link #isStopped}. */
    private volatile CountDownLatch ended = new CountDownLatch(1);

    private volatile CountDownLatch running = new CountDownLatch(1);
    private volatile boolean isStopped;
    /** Bounds the replacement of failed threads; guarded by itself. */
    private final Patience patience;

    private int runningLooks;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    /**
     * @param algorithm decides batches
     * @param stateDirectory of this instance alone; a lost one only slows the restart
     * @param registry for the meters of topology and engine
     */
    public TopologyRunner(
            TopologyConfig config,
            Algorithm algorithm,
            LogConnection connection,
            Path stateDirectory,
            MeterRegistry registry) {
        this(config, algorithm, connection, stateDirectory, registry, StreamsConfig.EXACTLY_ONCE_V2);
    }

    /**
     * An instance with at-least-once processing, to measure the cost of exactly-once. Not for training.
     */
    public static TopologyRunner atLeastOnce(
            TopologyConfig config,
            Algorithm algorithm,
            LogConnection connection,
            Path stateDirectory,
            MeterRegistry registry) {
        return new TopologyRunner(config, algorithm, connection, stateDirectory, registry, StreamsConfig.AT_LEAST_ONCE);
    }

    private TopologyRunner(
            TopologyConfig config,
            Algorithm algorithm,
            LogConnection connection,
            Path stateDirectory,
            MeterRegistry registry,
            String guarantee) {
        this.guarantee = guarantee;
        this.config = config;
        this.algorithm = algorithm;
        this.registry = registry;
        this.connection = connection;
        this.stateDirectory = stateDirectory;
        this.meters = new TopologyMeters(registry, connection.alarms());
        this.waits = meters.waits();
        this.pulse = connection.alarms().begin("topology");
        this.patience =
                new Patience("topology", connection.patience(), connection.alarms(), () -> RootCause.of(connection));
        this.alarms = new StallAlarms(config.runtime().alarmAfterMs(), connection.alarms(), registry);
    }

    /** Creates the engine for the rebalance protocol that the broker supports. */
    private KafkaStreams made(Quarantines quarantines) {
        RuntimeConfig runtime = config.runtime();
        EpochOffsets.begin(connection, MillraceTopology.inputs(config, connection.topics()), runtime.startTimeoutMs());
        boolean streamsGroup = new GroupSetup(runtime, connection).usesStreamsGroup();
        String name = streamsGroup ? "" : InstanceName.of(runtime.instanceId(), stateDirectory);
        if (!streamsGroup) {
            takeName(name);
        }
        Topology topology = MillraceTopology.build(config, algorithm, RunContext.of(connection, meters), quarantines);
        StreamsConfig settings =
                new StreamsConfig(StreamsProperties.of(runtime, connection, stateDirectory, guarantee, name));
        KafkaStreams made = streamsGroup
                ? new KafkaStreams(topology, settings)
                : new KafkaStreams(
                        topology,
                        settings,
                        new StaticTransactionalIds(
                                StreamsProperties.transactionalPrefix(connection, name),
                                connection.topics().trajectories(),
                                MillraceTopology.joined(config, connection.topics())));
        made.setUncaughtExceptionHandler(this::failed);
        CountDownLatch runs = running;
        CountDownLatch ends = ended;
        made.setStateListener((now, before) -> changed(now, before, runs, ends));
        return made;
    }

    /**
     * Takes the instance name before the engine joins its group. Replaces an older instance of the name.
     */
    private void takeName(String name) {
        if (owner == null) {
            InstanceOwner first =
                    new InstanceOwner(connection, StreamsProperties.transactionalPrefix(connection, name));
            first.own(this::isStopped);
            owner = first;
        }
    }

    private StreamThreadExceptionResponse failed(Throwable thrown) {
        try {
            // A replaced thread would go on as another member with other transactional ids, beside whoever fenced it.
            boolean isFenced = owner != null && InstanceOwner.isFenced(thrown);
            if (!isFenced
                    && thrown instanceof RuntimeException exception
                    && EngineFailure.isRetriable(exception)
                    && tryAgain(exception)) {
                return StreamThreadExceptionResponse.REPLACE_THREAD;
            }
            failure.compareAndSet(null, thrown);
        } catch (RuntimeException e) {
            failure.compareAndSet(null, e);
        }
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
    }

    /**
     * Whether the instance was fenced although no other process has its name.
     *
     * @throws dev.millrace.log.transaction.TakenOverException if another process has it
     */
    private boolean isFencedWithoutSuccessor(Throwable thrown) {
        InstanceOwner own = owner;
        return own != null && InstanceOwner.isFenced(thrown) && own.own(this::isStopped);
    }

    private boolean isStopped() {
        return isStopped;
    }

    private boolean tryAgain(RuntimeException thrown) {
        synchronized (patience) {
            runningLooks = 0;
            return patience.again(thrown, () -> ended.getCount() == 0);
        }
    }

    private static void changed(
            KafkaStreams.State now, KafkaStreams.State before, CountDownLatch running, CountDownLatch ended) {
        LOG.debug("topology {} after {}", now, before);
        if (now == KafkaStreams.State.RUNNING) {
            running.countDown();
        }
        if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
            running.countDown();
            ended.countDown();
        }
    }

    /**
     * Runs; returns after {@link #stop}.
     *
     * @throws TopologyException if it cannot start in time, has to stop, or does not stop in time
     */
    public void run() {
        try (Quarantines quarantines = Quarantines.of(connection)) {
            open(quarantines); // before the first record
            run(quarantines);
        }
    }

    private static void open(Quarantines quarantines) {
        try {
            quarantines.open();
        } catch (IllegalStateException e) {
            throw new TopologyException("the topology cannot start: " + e.getMessage() + "; create the run first", e);
        }
    }

    private void run(Quarantines quarantines) {
        Throwable thrown = runAttempt(quarantines);
        while (thrown != null && awaitRestart(thrown)) {
            thrown = runAttempt(quarantines);
        }
    }

    /**
     * Waits before a restart of the failed engine; false if stopped.
     *
     * @throws TopologyException if the failure is permanent
     */
    private boolean awaitRestart(Throwable thrown) {
        try {
            if (!isFencedWithoutSuccessor(thrown)) {
                throw EngineFailure.explained(thrown);
            }
            return reset(thrown);
        } catch (TakenOverException | PatienceOverException e) {
            throw new TopologyException("the topology stopped: " + e.getMessage(), e);
        }
    }

    private boolean reset(Throwable thrown) {
        synchronized (this) {
            if (isStopped) {
                return false;
            }
            ended = new CountDownLatch(1);
            running = new CountDownLatch(1);
            failure.set(null);
        }
        return tryAgain(new KafkaException("this instance was fenced although no other process uses its name: "
                + EngineFailure.root(thrown).getMessage()));
    }

    /** Runs the engine until it is stopped or fails; returns the failure, or null. */
    private @Nullable Throwable runAttempt(Quarantines quarantines) {
        TopologyException sentence = null;
        KafkaStreams streams = made(quarantines);
        engine = streams;
        try (KafkaStreamsMetrics metrics = new KafkaStreamsMetrics(streams);
                StallWatch stalls = new StallWatch(config, connection, waits, alarms)) {
            metrics.bindTo(engineMeters());
            stalls.checkLog(); // before missing records are skipped
            streams.start();
            sentence = awaitEnd(streams, stalls);
            boolean closed = streams.close(
                    CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)
                            .withTimeout(Duration.ofMillis(config.runtime().stopTimeoutMs())));
            if (!closed && sentence == null) {
                sentence = new TopologyException("the topology did not stop within stop_timeout_ms "
                        + config.runtime().stopTimeoutMs() + "; uncommitted work is repeated");
            }
        }
        if (failure.get() == null && sentence != null) {
            throw sentence;
        }
        return failure.get();
    }

    /**
     * Returns the engine's part of the registry. Micrometer's binder also adds the metrics of the engine's clients, and removes
     * every meter with the same name and fewer tags, including those of other clients.
     */
    private MeterRegistry engineMeters() {
        CompositeMeterRegistry engineMeters = new CompositeMeterRegistry(Clock.SYSTEM, List.of(registry));
        engineMeters
                .config()
                .meterFilter(MeterFilter.denyUnless(id -> id.getName().startsWith("kafka.stream.")));
        return engineMeters;
    }

    /** Waits for a stop or a failure; returns the error to report, or null. */
    private @Nullable TopologyException awaitEnd(KafkaStreams streams, StallWatch stalls) {
        try {
            long limitMs = connection.limit(config.runtime().startTimeoutMs()).toMillis();
            if (!running.await(limitMs, TimeUnit.MILLISECONDS)) {
                return new TopologyException("the topology was not running after start_timeout_ms " + limitMs
                        + ", its state is " + streams.state()
                        + "; is the broker out of reach, or another instance named '"
                        + config.runtime().instanceId() + "' running?");
            }
            while (!ended.await(LOOK_PERIOD_MS, TimeUnit.MILLISECONDS)) { // until stop or failure, which both end it
                noteRunning(streams);
                stalls.look(streams);
            }
            return null;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return new TopologyException("the topology was interrupted", e);
        }
    }

    private void noteRunning(KafkaStreams streams) {
        noteTurns(streams);
        synchronized (patience) {
            runningLooks = streams.state() == KafkaStreams.State.RUNNING ? runningLooks + 1 : 0;
            if (runningLooks == LOOKS_OF_SUCCESS) {
                patience.succeeded();
            }
        }
    }

    /** Reports the engine as live while each of its threads polls. */
    private void noteTurns(KafkaStreams streams) {
        KafkaStreams.State state = streams.state();
        Optional<String> why = state != KafkaStreams.State.RUNNING
                ? Optional.of("its engine is " + state)
                : streams.metadataForLocalThreads().stream()
                                .allMatch(thread -> thread.activeTasks().isEmpty())
                        ? Optional.of("it has no partition")
                        : Optional.empty();
        pulse.turn(why, streams.metrics().values().stream().noneMatch(TopologyRunner::isSlowToPoll));
    }

    /** Whether this metric shows a thread that has not polled for {@link #LONGEST_TURN}. */
    private static boolean isSlowToPoll(Metric metric) {
        String client = metric.metricName().tags().getOrDefault("client-id", "");
        return metric.metricName().name().equals("last-poll-seconds-ago")
                && client.contains("StreamThread")
                && !client.contains("restore")
                && metric.metricValue() instanceof Number seconds
                && seconds.doubleValue() > LONGEST_TURN.toSeconds();
    }

    /** Ends {@link #run} after the next commit; returns at once, from any thread. */
    public synchronized void stop() {
        isStopped = true;
        ended.countDown();
        running.countDown();
    }

    /** True while records are processed; false during start, rebalances and after the end. */
    public boolean isRunning() {
        KafkaStreams streams = engine;
        return streams != null && streams.state() == KafkaStreams.State.RUNNING;
    }

    @Override
    public void close() {
        stop();
    }

    /**
     * Commits the first offsets of a later epoch, so that the topology need not read and skip older records.
     */
    static final class EpochOffsets {
        private static final Logger LOG = LoggerFactory.getLogger(EpochOffsets.class);

        private EpochOffsets() {}

        /** @param topics that the topology reads */
        static void begin(LogConnection connection, Set<String> topics, long limitMs) {
            Map<TopicPartition, OffsetAndMetadata> begins =
                    new TreeMap<>(Comparator.comparing(TopicPartition::toString));
            connection.lineage().beganAt().forEach((name, offset) -> {
                int dash = name.lastIndexOf('-');
                TopicPartition partition =
                        new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
                if (topics.contains(partition.topic())) {
                    begins.put(partition, new OffsetAndMetadata(offset));
                }
            });
            if (begins.isEmpty()) {
                return;
            }
            String group = connection.group("topology");
            try (Admin admin = Admin.create(connection.as("group").admin())) {
                Map<TopicPartition, OffsetAndMetadata> committed = admin.listConsumerGroupOffsets(group)
                        .partitionsToOffsetAndMetadata()
                        .get(limitMs, TimeUnit.MILLISECONDS);
                begins.keySet().removeIf(partition -> committed.get(partition) != null);
                if (!begins.isEmpty()) {
                    admin.alterConsumerGroupOffsets(group, begins).all().get(limitMs, TimeUnit.MILLISECONDS);
                }
            } catch (ExecutionException | TimeoutException e) { // a running instance has begun there already
                LOG.info("the topology reads from the beginning of its topics: {}", e.toString());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Chooses the rebalance protocol. For a streams group it sets session, heartbeat and standby replicas, which the broker keeps
     * as settings of the group.
     */
    static final class GroupSetup {
        private static final Logger LOG = LoggerFactory.getLogger(GroupSetup.class);
        private static final String FEATURE = "streams.version";

        private final RuntimeConfig config;
        private final LogConnection connection;

        GroupSetup(RuntimeConfig config, LogConnection connection) {
            this.config = config;
            this.connection = connection;
        }

        /**
         * Returns whether to use a streams group, and configures it.
         *
         * @throws TopologyException if one is required but not supported, or the broker does not answer
         */
        boolean usesStreamsGroup() {
            if (config.rebalanceProtocol() == RebalanceProtocol.CLASSIC) {
                return false;
            }
            Optional<String> unsupportedReason = unsupportedReason();
            if (unsupportedReason.isEmpty()) {
                LOG.info(
                        "the topology shares its partitions by the broker's streams group {}",
                        connection.group("topology"));
                return true;
            }
            if (config.rebalanceProtocol() == RebalanceProtocol.STREAMS) {
                throw new TopologyException("rebalance_protocol is streams, and " + unsupportedReason.get()
                        + "; set rebalance_protocol=classic or auto");
            }
            LOG.info("the topology shares its partitions by the classic protocol, since {}", unsupportedReason.get());
            return false;
        }

        /** Why a streams group is not supported; empty if it is configured now. */
        private Optional<String> unsupportedReason() {
            if (!config.instanceId().isEmpty()) {
                return Optional.of("instance_id is '" + config.instanceId()
                        + "' and an instance is no static member of a streams group");
            }
            try (Admin admin = Admin.create(connection.as("group").admin())) {
                FinalizedVersionRange streams = within(admin.describeFeatures().featureMetadata())
                        .finalizedFeatures()
                        .get(FEATURE);
                if (streams == null || streams.maxVersionLevel() < 1) {
                    return Optional.of("the broker has no streams groups (feature " + FEATURE + " is "
                            + (streams == null ? "not there" : streams.maxVersionLevel()) + ")");
                }
                ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, connection.group("topology"));
                within(admin.incrementalAlterConfigs(Map.of(
                                group,
                                List.of(
                                        set("streams.session.timeout.ms", config.sessionTimeoutMs()),
                                        set("streams.heartbeat.interval.ms", config.sessionTimeoutMs() / 4),
                                        set("streams.num.standby.replicas", config.standbyReplicas()))))
                        .all());
                return Optional.empty();
            } catch (ExecutionException e) {
                return Optional.of("the broker does not grant its streams group session_timeout_ms "
                        + config.sessionTimeoutMs() + " or standby_replicas " + config.standbyReplicas() + ": "
                        + Objects.requireNonNullElse(e.getCause(), e).getMessage());
            }
        }

        private <T> T within(org.apache.kafka.common.KafkaFuture<T> answer) throws ExecutionException {
            try {
                return answer.get(limitMs(), TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                throw new TopologyException(
                        "the broker did not say within start_timeout_ms " + limitMs()
                                + " whether it has streams groups; is it out of reach?",
                        e);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new TopologyException("the topology was interrupted", e);
            }
        }

        private long limitMs() {
            return connection.limit(config.startTimeoutMs()).toMillis();
        }

        private static AlterConfigOp set(String name, int value) {
            return new AlterConfigOp(new ConfigEntry(name, Integer.toString(value)), AlterConfigOp.OpType.SET);
        }
    }

    /**
     * Tells a replaced instance from one that the group coordinator has fenced by mistake.
     *
     * <p>A coordinator that stalls for longer than a session may find two join requests of one process, both without a
     * member id. It then treats the first as an older process of the same name and fences it like a replaced instance.
     * So each instance records its ownership of the name when it starts, as in every other role, and checks it when it
     * is fenced.
     *
     * <p>It holds no client between these two moments.
     */
    static final class InstanceOwner {
        private static final int TRANSACTION_TIMEOUT_MS = 10_000;

        private final TransactionalWriter writer;

        /** @param name prefix of the instance's transactional ids */
        InstanceOwner(LogConnection connection, String name) {
            this.writer = TransactionalWriter.of(connection, name, TRANSACTION_TIMEOUT_MS, Map.of("client.id", name));
        }

        /** Whether a failure means that another member or producer has the instance's name. */
        static boolean isFenced(Throwable failure) {
            for (Throwable e = failure; e != null; e = e.getCause()) {
                if (e instanceof FencedInstanceIdException || e instanceof ProducerFencedException) {
                    return true;
                }
            }
            return false;
        }

        /**
         * Takes the name over the first time, and verifies the ownership later, with retries until the patience is
         * over.
         *
         * @param stopped returns true to give up
         * @return false if it was given up
         * @throws dev.millrace.log.transaction.TakenOverException if this instance had the name, and a newer one has it now
         */
        boolean own(BooleanSupplier stopped) {
            try {
                return writer.takeOver(stopped, () -> {});
            } finally {
                writer.close();
            }
        }
    }

    /**
     * Watches, during one run of the engine, the waits of its stages and, less often, records that open transactions
     * hold back. Used by one thread.
     */
    static final class StallWatch implements AutoCloseable {
        /** Number of stage checks per check of the log. */
        private static final int LOOKS_AT_LOG = 10;

        private static final int LOG_ANSWERS_MS = 5_000;

        private final WaitBoard waits;
        private final StallAlarms alarms;
        private final LogStalls log;
        private int looks;

        /** @param alarms outlive the engine */
        StallWatch(TopologyConfig config, LogConnection connection, WaitBoard waits, StallAlarms alarms) {
            this.waits = waits;
            this.alarms = alarms;
            this.log = logStalls(config, connection);
        }

        private static LogStalls logStalls(TopologyConfig config, LogConnection connection) {
            Map<String, Object> limits = Map.of(
                    "default.api.timeout.ms",
                    LOG_ANSWERS_MS,
                    "request.timeout.ms",
                    LOG_ANSWERS_MS,
                    "group.id",
                    connection.group("topology"));
            Map<String, Object> written = new HashMap<>(limits);
            written.put("isolation.level", "read_uncommitted");
            return new LogStalls(
                    new LogReader(connection.as("stalls"), limits).consumer(),
                    new LogReader(connection.as("stalls-written"), written).consumer(),
                    MillraceTopology.inputs(config, connection.topics()),
                    config.runtime().alarmAfterMs(),
                    connection.alarms(),
                    connection.command("repair --do abort-transaction"),
                    connection.command("repair"));
        }

        void checkLog() {
            log.check(monotonicMs());
        }

        /** One check. */
        void look(KafkaStreams streams) {
            List<Wait> all = new ArrayList<>(waits.all());
            all.addAll(InputWaits.of(streams));
            alarms.check(all, monotonicMs());
            if (++looks % LOOKS_AT_LOG == 0) {
                checkLog();
            }
        }

        private static long monotonicMs() {
            return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
        }

        @Override
        public void close() {
            log.close();
        }
    }

    /**
     * Creates the engine's clients: producers with transactional ids that survive a crash, and a consumer that tolerates a
     * truncated log and does not join faster than batches are made.
     *
     * <p>Without state on disk, the engine names its transactions after a random number drawn at each start. A transaction
     * that a crash left open then stays open until the broker times it out, and read_committed consumers wait for that.
     * With a stable name, the new instance first ends the old transaction.
     */
    static final class StaticTransactionalIds implements KafkaClientSupplier {
        private final String transactionalPrefix;
        private final String trajectories;
        private final Set<String> joined;

        /**
         * @param transactionalPrefix prefix of the ids
         * @param joined topics that trajectories are joined from
         */
        StaticTransactionalIds(String transactionalPrefix, String trajectories, Set<String> joined) {
            this.transactionalPrefix = transactionalPrefix;
            this.trajectories = trajectories;
            this.joined = joined;
        }

        @Override
        public Producer<byte[], byte[]> getProducer(Map<String, Object> config) {
            String drawn = (String) config.get(ProducerConfig.TRANSACTIONAL_ID_CONFIG);
            if (drawn == null) { // at-least-once processing has no transactions
                return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
            }
            String thread = drawn.substring(drawn.lastIndexOf('-') + 1);
            config.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactionalPrefix + "-" + thread);
            return new TransactionProducer(config);
        }

        /**
         * Does not flush: a commit sends all pending records together, and fails if one of them fails.
         *
         * <p>Before each commit the engine flushes once per task and waits for a request each time.
         */
        private static final class TransactionProducer extends KafkaProducer<byte[], byte[]> {
            TransactionProducer(Map<String, Object> config) {
                super(config, new ByteArraySerializer(), new ByteArraySerializer());
            }

            @Override
            public void flush() {
                // left to the commit
            }
        }

        @Override
        public Admin getAdmin(Map<String, Object> config) {
            return Admin.create(config);
        }

        @Override
        public Consumer<byte[], byte[]> getConsumer(Map<String, Object> config) {
            return new InputConsumer(config, trajectories, joined);
        }

        @Override
        public Consumer<byte[], byte[]> getRestoreConsumer(Map<String, Object> config) {
            return consumer(config);
        }

        @Override
        public Consumer<byte[], byte[]> getGlobalConsumer(Map<String, Object> config) {
            return consumer(config);
        }

        private static Consumer<byte[], byte[]> consumer(Map<String, Object> config) {
            return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        /**
         * Resumes at the new end of a partition that lost its tail, as after a power loss or an unclean election. The engine
         * alone would reset to the beginning of the partition, and drop every rollout on it as a duplicate.
         *
         * <p>Joins nothing while more than {@value #MAX_WAITING} trajectories wait for their batch. All partitions get the same
         * share of fetches and of the thread, and the join has the more of them: in a backlog it would leave batches a
         * fraction of the rate until all is joined.
         */
        static final class InputConsumer extends KafkaConsumer<byte[], byte[]> {
            private static final Logger LOG = LoggerFactory.getLogger(InputConsumer.class);
            /** What the engine takes from a poll. */
            private static final long MAX_WAITING = 1_000;

            private final String trajectories;
            private final Set<String> joined;
            /** Paused during a poll, and not by the engine. */
            private final Set<TopicPartition> held = new HashSet<>();

            InputConsumer(Map<String, Object> config, String trajectories, Set<String> joined) {
                super(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                this.trajectories = trajectories;
                this.joined = joined;
            }

            @Override
            public ConsumerRecords<byte[], byte[]> poll(Duration timeout) {
                if (waiting() > MAX_WAITING) {
                    assignment().stream()
                            .filter(partition -> joined.contains(partition.topic()))
                            .forEach(held::add);
                    held.removeAll(paused());
                    super.pause(held);
                }
                try {
                    return super.poll(timeout);
                } catch (LogTruncationException e) {
                    seekNewEnds(e, this::seek);
                    return ConsumerRecords.empty();
                } finally {
                    held.retainAll(assignment());
                    super.resume(held);
                    held.clear();
                }
            }

            private long waiting() {
                return assignment().stream()
                        .filter(partition -> partition.topic().equals(trajectories))
                        .mapToLong(partition -> currentLag(partition).orElse(0))
                        .max()
                        .orElse(0);
            }

            /** The engine pauses what is restored; a poll that rebalances must not resume that. */
            @Override
            public void pause(Collection<TopicPartition> partitions) {
                held.removeAll(partitions);
                super.pause(partitions);
            }

            /**
             * Seeks the new ends of the partitions.
             *
             * @throws LogTruncationException the same if an end is unknown
             */
            static void seekNewEnds(LogTruncationException lost, BiConsumer<TopicPartition, OffsetAndMetadata> seek) {
                Map<TopicPartition, OffsetAndMetadata> ends = lost.divergentOffsets();
                if (!ends.keySet().containsAll(lost.partitions())) {
                    throw lost;
                }
                ends.forEach((partition, end) -> {
                    LOG.warn(
                            "{} lost the offsets from {} up to {}, which were read; continues at its new end",
                            partition,
                            end.offset(),
                            lost.offsetOutOfRangePartitions().get(partition));
                    seek.accept(partition, end);
                });
            }
        }
    }

    /**
     * Interprets a failure of the engine. The engine wraps every exception of a thread; the wrapped cause tells the kind of
     * failure.
     */
    static final class EngineFailure {
        private EngineFailure() {}

        /** Whether a replacement of the failed thread may succeed. */
        static boolean isRetriable(Throwable thrown) {
            Throwable cause = thrown;
            while (cause instanceof StreamsException && cause.getCause() != null) {
                cause = cause.getCause();
            }
            return !(cause instanceof StreamsException) && RetriableFailures.isRetriable(cause);
        }

        /** Returns the failure with an explanation. */
        static TopologyException explained(Throwable thrown) {
            for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
                if (cause instanceof MissingSourceTopicException) {
                    return new TopologyException(
                            "a topic of the run does not exist: " + cause.getMessage() + "; create the run first",
                            thrown);
                }
            }
            Throwable root = root(thrown);
            return new TopologyException(
                    "the topology stopped: "
                            + (root.getMessage() == null ? root.getClass().getSimpleName() : root.getMessage()),
                    thrown);
        }

        /** Returns the innermost cause. */
        static Throwable root(Throwable thrown) {
            Throwable root = thrown;
            while (root.getCause() != null) {
                root = root.getCause();
            }
            return root;
        }
    }
}
