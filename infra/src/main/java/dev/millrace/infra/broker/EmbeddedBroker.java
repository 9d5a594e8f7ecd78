package dev.millrace.infra.broker;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.server.Server;
import kafka.server.SharedServer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.BrokerIdNotRegisteredException;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.common.message.DescribeTransactionsResponseData.TransactionState;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ControllerRequestContext;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.raft.DynamicVoters;
import org.apache.kafka.server.ServerSocketFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A Kafka broker (KRaft: broker and controller) inside this process, alone unless it is a {@link BrokerCluster}'s.
 *
 * <p>A new directory is formatted; an old one continues where it stopped, with its records, its committed offsets
 * and transactions, also on other ports and after a kill -9. Starting takes about three seconds in a cold JVM, half a second after
 * that. A fault that it cannot live with, such as a full disk, does not end the JVM: see {@link #failure()}.
 * Thread-safe.
 */
public final class EmbeddedBroker implements AutoCloseable {
    /** Name of the thread group of a broker's threads. */
    public static final String THREADS = "broker";

    private static final Logger LOG = LoggerFactory.getLogger(EmbeddedBroker.class);

    private static final long AFTER_FAULT_MS = 500;
    /** Where the broker keeps transactions and committed offsets, in the order in which they go to the disk. */
    private static final List<String> OWN_TOPICS = List.of("__transaction_state", "__consumer_offsets");
    /** Between looks at whether a transaction is complete. */
    private static final long MARKS_LOOK_NANOS = 200_000;

    private final Path directory;
    private final BrokerConfig config;
    private final Faults faults;
    private final BoundPort port;
    private final BoundPort controllerPort;
    private final ControllerServer controller;
    private final BrokerServer broker;
    private final AtomicBoolean closed = new AtomicBoolean();

    /** Makes the parts; a failure closes those that were made. */
    private EmbeddedBroker(
            Path directory,
            BrokerConfig config,
            BoundPort port,
            BoundPort controllerPort,
            Membership member,
            Map<String, String> settings,
            Faults faults) {
        this.directory = directory;
        this.config = config;
        this.port = port;
        this.controllerPort = controllerPort;
        this.faults = faults;
        KafkaConfig kafka =
                new KafkaConfig(BrokerProperties.of(directory, config, port.number(), member, settings), false);
        var formatted = KafkaRaftServer.initializeLogDirs(kafka, LOG, "");
        Map<String, BoundPort> ports =
                Map.of(BrokerProperties.CLIENT_LISTENER, port, BrokerProperties.CONTROLLER_LISTENER, controllerPort);
        ServerSocketFactory sockets = (listener, address, backlog, receiveBytes) ->
                Objects.requireNonNull(ports.get(listener), listener).handOver();
        SharedServer shared = new SharedServer(
                kafka,
                formatted._1(),
                Time.SYSTEM,
                Server.initializeMetrics(
                        kafka, Time.SYSTEM, formatted._1().clusterId().orElseThrow()),
                CompletableFuture.completedFuture(Map.of()),
                member.voters().stream()
                        .map(voter -> new InetSocketAddress("127.0.0.1", voter.controllerPort()))
                        .toList(),
                faults.factory(),
                sockets);
        this.controller = new ControllerServer(shared, KafkaRaftServer.configSchema(), formatted._2());
        this.broker = new BrokerServer(shared);
    }

    /** As {@link #start(Path, BrokerConfig)} with the default settings: any free port. */
    public static EmbeddedBroker start(Path directory) {
        return start(directory, BrokerConfig.defaults());
    }

    /**
     * Starts a broker and returns when it serves.
     *
     * @param directory for its data; made if it is not there
     * @throws BrokerException if the port is taken, the directory cannot be used or the broker does not come up in
     *     time, in a sentence that says what to do
     */
    public static EmbeddedBroker start(Path directory, BrokerConfig config) {
        return start(directory, config, Optional.empty(), Map.of());
    }

    /**
     * As {@link #start(Path, BrokerConfig)}.
     *
     * @param settings by Kafka's own names, over those made here
     */
    public static EmbeddedBroker start(Path directory, BrokerConfig config, Map<String, String> settings) {
        return start(directory, config, Optional.empty(), settings);
    }

    /**
     * @param given cluster and node id; empty for a cluster of one
     * @param settings by Kafka's own names, over those made here
     */
    static EmbeddedBroker start(
            Path directory, BrokerConfig config, Optional<Membership> given, Map<String, String> settings) {
        requireServer();
        Path absolute = directory.toAbsolutePath().normalize();
        BrokerDirectory home = new BrokerDirectory(absolute);
        home.check(config.minFreeBytes());
        BoundPort port = BoundPort.open(config.port());
        BoundPort controllerPort =
                BoundPort.open(given.map(Membership::controllerPort).orElse(0));
        Membership member = given.orElseGet(() -> Membership.alone(controllerPort.number()));
        Faults faults = new Faults(absolute.toString());
        EmbeddedBroker started = null;
        try {
            home.formatIfNew(member, BrokerProperties.CONTROLLER_LISTENER);
            started = new EmbeddedBroker(absolute, config, port, controllerPort, member, settings, faults);
            started.startUp(member);
            return started;
        } catch (RuntimeException e) {
            if (started != null) {
                started.close();
            } else {
                faults.close();
                port.close();
                controllerPort.close();
            }
            throw e instanceof BrokerException
                    ? e
                    : new BrokerException("the broker did not start in " + absolute + ": " + e.getMessage(), e);
        }
    }

    /** A distribution has the server's jars in a folder of their own, for machines that need none to leave out. */
    private static void requireServer() {
        if (EmbeddedBroker.class.getResource("/kafka/server/KafkaRaftServer.class") == null) {
            throw new BrokerException("cannot start a broker: Kafka's server is not on the class path; put the folder"
                    + " lib/broker of the distribution back, or use a cluster (run.bootstrap_servers)");
        }
    }

    /** {@code host:port}, for {@code bootstrap.servers}. */
    public String bootstrapServers() {
        return "127.0.0.1:" + port.number();
    }

    /**
     * Puts on the disk what these topics hold, and the broker's own topics of committed offsets and transactions, and returns when it
     * is there: no power loss takes it any more. Costs one flush of each partition that has something new. Calls take turns.
     *
     * <p>A transaction that is committed and not yet marked on every partition is waited for. The topic of transactions comes first: where
     * the disk has a transaction as complete, it has its marks too, or a partition would stay open for good.
     *
     * @param topics those of them that are not there are left out
     * @param transactionalId of who writes what must not be lost
     * @return up to which offset, exclusive, each of their partitions is on the disk
     * @throws BrokerException if the transaction is not complete within the limit of the broker's start
     */
    public synchronized Map<TopicPartition, Long> sync(Collection<String> topics, String transactionalId) {
        awaitMarked(transactionalId);
        Map<TopicPartition, Long> ends = new HashMap<>();
        Stream.concat(OWN_TOPICS.stream(), topics.stream())
                .flatMap(topic -> broker.logManager().logsByTopic(topic).stream())
                .forEach(log -> {
                    log.flush(false);
                    ends.put(log.topicPartition(), log.recoveryPoint());
                });
        return ends;
    }

    private void awaitMarked(String transactionalId) {
        long deadlineNanos = System.nanoTime() + config.startTimeoutMs() * 1_000_000;
        TransactionState found = stateOf(transactionalId);
        while (!isMarked(found)) {
            if (System.nanoTime() - deadlineNanos > 0) {
                throw new BrokerException("the transaction of " + transactionalId + " was not complete within "
                        + config.startTimeoutMs() + " ms (broker.start_timeout_ms): " + found);
            }
            LockSupport.parkNanos(MARKS_LOOK_NANOS);
            found = stateOf(transactionalId);
        }
    }

    /** A broker that has just started does not know the transaction yet, and that is no answer. */
    private static boolean isMarked(TransactionState found) {
        Errors error = Errors.forCode(found.errorCode());
        return error == Errors.TRANSACTIONAL_ID_NOT_FOUND
                || error == Errors.NONE && !found.transactionState().startsWith("Prepare");
    }

    private TransactionState stateOf(String transactionalId) {
        return broker.transactionCoordinator().handleDescribeTransactions(transactionalId);
    }

    public Path directory() {
        return directory;
    }

    /** Completes, never exceptionally, with the fault that made the broker unable to go on. */
    public CompletionStage<BrokerException> failure() {
        return faults.fatal().minimalCompletionStage();
    }

    /**
     * Stops the broker and waits until it is down, at most as long as the settings say; what is still running then
     * is said in the log.
     */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        BoundedTask stop = new BoundedTask("stop of the broker in " + directory, this::shutDown);
        try {
            if (!stop.await(config.stopTimeoutMs())) {
                LOG.error(
                        "the broker in {} was not down after {} ms; its threads are left as they are",
                        directory,
                        config.stopTimeoutMs());
            }
            stop.failure().ifPresent(e -> LOG.error("the broker in {} did not stop cleanly", directory, e));
        } finally {
            faults.close();
            port.close();
            controllerPort.close();
        }
    }

    private void startUp(Membership member) {
        BoundedTask start = new BoundedTask("start of the broker in " + directory, () -> {
            controller.startup(); // first, because the broker asks it for the cluster's metadata
            if (member
                    .isAlone()) { // in a cluster others have taken over, and the earlier life is for its controller to
                // end
                new StaleBrokerRegistration(controller.controller(), member.nodeId()).forget(config.startTimeoutMs());
            }
            broker.startup();
        });
        boolean done = start.await(config.startTimeoutMs());
        if (faults.fatal().isDone()) {
            throw faults.fatal().join();
        }
        start.failure().ifPresent(e -> {
            throw new BrokerException("the broker did not start in " + directory + ": " + e.getMessage(), e);
        });
        if (!done && Thread.currentThread().isInterrupted()) {
            throw new BrokerException("the start of the broker in " + directory + " was interrupted");
        }
        if (!done) {
            throw new BrokerException("the broker in " + directory + " did not serve within start_timeout_ms="
                    + config.startTimeoutMs() + "; raise it if the disk is slow");
        }
    }

    private void shutDown() {
        // after a fault nobody may be there to approve an orderly leave
        long limitMs = faults.fatal().isDone() ? AFTER_FAULT_MS : config.stopTimeoutMs() / 2;
        broker.shutdown(Duration.ofMillis(limitMs)); // first: its leave goes through the controller
        controller.shutdown();
    }

    /** One piece of work on a thread of its own, because Kafka's start and stop know no limit of time. */
    static final class BoundedTask {
        private final Thread thread;
        private final AtomicReference<Throwable> failure = new AtomicReference<>();

        BoundedTask(String name, Runnable work) {
            thread = new Thread(
                    new ThreadGroup(THREADS), // those that it starts are in it too
                    () -> {
                        try {
                            work.run();
                        } catch (Throwable e) { // an error of the broker is reported like any other failure
                            failure.set(e);
                        }
                    },
                    name);
            thread.setDaemon(true);
            thread.start();
        }

        /**
         * Waits for the end; an interruption stops the waiting and stays set.
         *
         * @return whether the work is done
         */
        boolean await(long limitMs) {
            try {
                thread.join(limitMs);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return !thread.isAlive();
        }

        Optional<Throwable> failure() {
            return Optional.ofNullable(failure.get());
        }
    }

    /** The directory under which a broker keeps everything: checked before each start, formatted before the first. */
    record BrokerDirectory(Path path) {
        private static final String META_PROPERTIES = "meta.properties";
        /** Kafka's own lock file; a broker that uses the directory holds it. */
        private static final String LOCK = ".lock";

        /**
         * Makes the directory if need be.
         *
         * @throws BrokerException if it cannot be written to, is used by another broker or has too little space
         */
        void check(long minFreeBytes) {
            try {
                Files.createDirectories(path);
                requireUnused();
                long free = Files.getFileStore(path).getUsableSpace();
                if (free < minFreeBytes) {
                    throw new BrokerException("no space for the broker's data in " + path + ": " + (free >> 20)
                            + " MiB are free, at least " + (minFreeBytes >> 20)
                            + " MiB are needed; free some or choose another directory");
                }
            } catch (IOException e) {
                throw new BrokerException(
                        "cannot write the broker's data to " + path + ": " + reason(e) + "; choose another directory",
                        e);
            }
        }

        void formatIfNew(Membership member, String controllerListener) {
            if (Files.exists(path.resolve(META_PROPERTIES))) {
                return;
            }
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            try (PrintStream out = new PrintStream(said, true, StandardCharsets.UTF_8)) {
                new Formatter()
                        .setPrintStream(out)
                        .setNodeId(member.nodeId())
                        .setClusterId(member.clusterId())
                        .setDirectories(List.of(path.toString()))
                        .setMetadataLogDirectory(path.toString())
                        .setControllerListenerName(controllerListener)
                        .setIgnoreFormatted(true)
                        .setHasDynamicQuorum(true)
                        .setInitialControllers(DynamicVoters.parse(member.votersText()))
                        .run();
            } catch (Exception e) { // what the formatter declares
                throw new BrokerException(
                        "cannot prepare " + path + " for the broker: " + reason(e) + " "
                                + said.toString(StandardCharsets.UTF_8).strip(),
                        e);
            }
        }

        private void requireUnused() throws IOException {
            try (FileChannel channel =
                            FileChannel.open(path.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    FileLock lock = channel.tryLock()) {
                if (lock == null) {
                    throw inUse();
                }
            } catch (OverlappingFileLockException e) {
                throw inUse();
            }
        }

        private BrokerException inUse() {
            return new BrokerException("another broker uses " + path + "; stop it or choose another directory");
        }

        private static String reason(Exception e) {
            String type = e.getClass().getSimpleName().replace("Exception", "");
            return e.getMessage() == null ? type : type + " " + e.getMessage();
        }
    }

    /**
     * What the controller of a lone broker remembers of the broker's life before a crash: a registration, under which every
     * partition still has a leader.
     *
     * <p>Left alone, it lasts for {@code broker.session.timeout.ms}. Until then the new life may not register, yet it finds
     * itself leader of everything, so its transaction coordinator takes up what was open: commits that lack their markers, and
     * transactions that time out. Nobody can take the markers yet. When the old registration then runs out, no partition has a
     * leader for a moment, and the coordinator drops these markers as those of deleted topics and calls the transactions
     * complete: their records are never committed nor aborted, and readers of committed records wait behind them
     * forever. So the registration is taken out before the broker starts; a second process cannot be meant by it, because the
     * directory's lock is ours.
     */
    static final class StaleBrokerRegistration {
        private static final long RETRY_MS = 20;

        private final Controller controller;
        private final int nodeId;

        /** @param nodeId of the broker, alone in its cluster */
        StaleBrokerRegistration(Controller controller, int nodeId) {
            this.controller = controller;
            this.nodeId = nodeId;
        }

        /**
         * Takes it out of the cluster; returns when that is done, or when there is none.
         *
         * @throws BrokerException if the controller is not active after so long
         */
        void forget(long limitMs) {
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
            while (!isForgotten()) {
                if (System.nanoTime() - deadline > 0) {
                    throw new BrokerException("the controller was not active within start_timeout_ms=" + limitMs
                            + "; raise it if the disk is slow");
                }
                pause();
            }
        }

        private boolean isForgotten() {
            try {
                controller
                        .unregisterBroker(
                                new ControllerRequestContext(
                                        new RequestHeaderData(), KafkaPrincipal.ANONYMOUS, OptionalLong.empty()),
                                nodeId)
                        .join();
                return true;
            } catch (CompletionException e) {
                if (e.getCause() instanceof BrokerIdNotRegisteredException) {
                    return true;
                }
                if (e.getCause() instanceof NotControllerException) { // not yet: it reads its log first
                    return false;
                }
                throw e;
            }
        }

        private static void pause() {
            try {
                Thread.sleep(RETRY_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new BrokerException("the start of the broker was interrupted");
            }
        }
    }
}
