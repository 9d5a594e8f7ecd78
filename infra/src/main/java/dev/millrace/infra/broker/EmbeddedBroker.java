package dev.millrace.infra.broker;

import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.server.Server;
import kafka.server.SharedServer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.ServerSocketFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A Kafka broker (KRaft: broker and controller) inside this process, alone unless it is a {@link BrokerCluster}'s.
 *
 * <p>A new directory is formatted; an old one goes on where it stopped, with its records, its committed offsets
 * and transactions, also on other ports and after a kill -9. Starting takes about three seconds in a cold JVM, half a second after
 * that. A fault that it cannot live with, such as a full disk, does not end the JVM: see {@link #failure()}.
 * Thread-safe.
 */
public final class EmbeddedBroker implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(EmbeddedBroker.class);

    private static final long AFTER_FAULT_MS = 500;

    private final Path directory;
    private final BrokerConfig config;
    private final Faults faults;
    private final BoundPort port;
    private final BoundPort controllerPort;
    private final ControllerServer controller;
    private final BrokerServer broker;
    private final AtomicBoolean closed = new AtomicBoolean();

    /** Makes the parts; whatever fails on the way closes what was made. */
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
     * @param given which node of which cluster it is; empty for a cluster of one
     * @param settings by Kafka's own names, over those made here
     */
    static EmbeddedBroker start(
            Path directory, BrokerConfig config, Optional<Membership> given, Map<String, String> settings) {
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

    /** {@code host:port}, for {@code bootstrap.servers}. */
    public String bootstrapServers() {
        return "127.0.0.1:" + port.number();
    }

    /**
     * Says what a published version rests on: with {@link Durability#VERSIONS} what these topics hold, and the broker's own topics
     * of committed offsets and transactions, is on the disk before it is acknowledged.
     *
     * @param topics those of them that are not there are left out
     * @throws BrokerException if the broker does not take it within the limit of its start
     */
    public void keep(Collection<String> topics) {
        new FlushedTopics(bootstrapServers(), config.startTimeoutMs())
                .set(topics, config.durability() == Durability.VERSIONS);
    }

    /** Where its data is. */
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
}
