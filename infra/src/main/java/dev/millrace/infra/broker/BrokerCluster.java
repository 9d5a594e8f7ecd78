package dev.millrace.infra.broker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.IntUnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A cluster of brokers, each in a process of its own: every partition has a copy on up to three of them, and a record counts
 * when all copies but one have it.
 *
 * <p>Each node is broker and controller, so that a cluster of three continues when any one of them is killed; one that was killed
 * or stopped can be started again. It is made for load and fault tests, and the cluster as a whole is not started again on the same
 * directory. Thread-safe.
 */
public final class BrokerCluster implements AutoCloseable {
    private static final int MOST = 9;

    /** What a node is started with, each time. */
    private record Node(Path directory, BrokerConfig config, List<String> javaOptions, List<String> arguments) {
        BrokerProcess start() {
            return BrokerProcess.start(directory, config, javaOptions, arguments);
        }
    }

    private final List<Node> nodes;
    private final List<BrokerProcess> brokers;

    private BrokerCluster(List<Node> nodes, List<BrokerProcess> brokers) {
        this.nodes = List.copyOf(nodes);
        this.brokers = new CopyOnWriteArrayList<>(brokers);
    }

    /** As {@link #start(Path, BrokerConfig, int, List, IntUnaryOperator, Map)} with brokers that are found at their own ports. */
    public static BrokerCluster start(Path directory, BrokerConfig config, int nodes, List<String> javaOptions) {
        return start(directory, config, nodes, javaOptions, IntUnaryOperator.identity(), Map.of());
    }

    /**
     * Starts all nodes at the same time and returns when all serve.
     *
     * @param directory for the nodes' data, one below it for each; made if it is not there
     * @param nodes 1 to 9
     * @param javaOptions options of each JVM, such as its heap
     * @param advertised maps a broker's port to the loopback port that it advertises to clients and brokers: its own or a proxy's; called
     *     for each node before any starts
     * @param settings by Kafka's own names, over those made here
     * @throws BrokerException if one does not come up in time; the others are then stopped
     */
    public static BrokerCluster start(
            Path directory,
            BrokerConfig config,
            int nodes,
            List<String> javaOptions,
            IntUnaryOperator advertised,
            Map<String, String> settings) {
        if (nodes < 1 || nodes > MOST) {
            throw new IllegalArgumentException("a cluster has 1 to " + MOST + " brokers: " + nodes);
        }
        if (nodes > 1 && config.port() != 0) {
            throw new IllegalArgumentException(
                    "several brokers cannot share a port; set broker.port to 0 for any free ones: " + config.port());
        }
        try {
            Files.createDirectories(directory);
        } catch (IOException e) {
            throw new BrokerException(
                    "cannot write the brokers' data to " + directory + ": " + e.getMessage()
                            + "; choose another directory",
                    e);
        }
        List<Integer> ports =
                freePorts(2 * nodes); // a node that took any free one could take another's before that has it
        List<Node> made = Membership.ofNewCluster(ports.subList(0, nodes)).stream()
                .map(member -> {
                    BrokerConfig own =
                            config.port() != 0 ? config : config.withPort(ports.get(nodes + member.nodeId() - 1));
                    List<String> arguments = new ArrayList<>(List.of(member.text()));
                    arguments.add("advertised.listeners="
                            + BrokerProperties.listeners(advertised.applyAsInt(own.port()), member));
                    settings.forEach((name, value) -> arguments.add(name + "=" + value));
                    return new Node(directory.resolve("broker-" + member.nodeId()), own, javaOptions, arguments);
                })
                .toList();
        List<CompletableFuture<BrokerProcess>> starts = made.stream()
                .map(node -> CompletableFuture.supplyAsync(
                        node::start, task -> new Thread(task, "start of " + node.directory()).start()))
                .toList();
        List<BrokerProcess> started = new ArrayList<>();
        BrokerException failure = null;
        for (CompletableFuture<BrokerProcess> start : starts) {
            try {
                started.add(start.join());
            } catch (CompletionException e) {
                failure = e.getCause() instanceof BrokerException cause
                        ? cause
                        : new BrokerException("a broker of the cluster did not start: " + e.getCause(), e);
            }
        }
        BrokerCluster cluster = new BrokerCluster(made, started);
        if (failure != null) {
            cluster.close();
            throw failure;
        }
        return cluster;
    }

    /** Held all at once, so that they differ. */
    private static List<Integer> freePorts(int count) {
        List<BoundPort> ports =
                Stream.generate(BoundPort::openForLater).limit(count).toList();
        List<Integer> numbers = ports.stream().map(BoundPort::number).toList();
        ports.forEach(BoundPort::close);
        return numbers;
    }

    /**
     * Starts a node that is down on its directory and ports, and returns when it serves. Not while another is started.
     *
     * @throws IllegalStateException if it is there still
     * @throws BrokerException if it does not come up in time
     */
    public void restart(int node) {
        if (brokers.get(node).isAlive()) {
            throw new IllegalStateException("broker " + (node + 1) + " is there, so it cannot be started again");
        }
        brokers.set(node, nodes.get(node).start());
    }

    public Path directory(int node) {
        return nodes.get(node).directory();
    }

    /** Every broker's own {@code host:port}, for {@code bootstrap.servers}. */
    public String bootstrapServers() {
        return brokers.stream().map(BrokerProcess::bootstrapServers).collect(Collectors.joining(","));
    }

    /** The nodes as they are now, by node id less one. */
    public List<BrokerProcess> brokers() {
        return List.copyOf(brokers);
    }

    /** Stops all nodes at the same time and kills a node that takes too long, for example without a quorum. */
    @Override
    public void close() {
        CompletableFuture.allOf(brokers.stream()
                        .map(broker -> CompletableFuture.runAsync(
                                broker::close, task -> new Thread(task, "stop of broker " + broker.pid()).start()))
                        .toArray(CompletableFuture[]::new))
                .join();
    }
}
