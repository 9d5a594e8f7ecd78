package dev.millrace.infra.broker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A cluster of brokers, each in a process of its own: every partition has a copy on up to three of them, and a record counts
 * when all copies but one have it.
 *
 * <p>Each node is broker and controller, so that a cluster of three goes on when any one of them is killed. It is made for
 * load and fault tests and is not started again on the same directory. Thread-safe.
 */
public final class BrokerCluster implements AutoCloseable {
    private static final int MOST = 9;

    private final List<BrokerProcess> brokers;

    private BrokerCluster(List<BrokerProcess> brokers) {
        this.brokers = List.copyOf(brokers);
    }

    /**
     * Starts all nodes at the same time and returns when all serve.
     *
     * @param directory for the nodes' data, one below it for each; made if it is not there
     * @param nodes 1 to 9
     * @param javaOptions options of each JVM, such as its heap
     * @throws BrokerException if one does not come up in time; the others are then stopped
     */
    public static BrokerCluster start(Path directory, BrokerConfig config, int nodes, List<String> javaOptions) {
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
        List<Membership> memberships = Membership.ofNewCluster(ports.subList(0, nodes));
        List<CompletableFuture<BrokerProcess>> starts = memberships.stream()
                .map(member -> CompletableFuture.supplyAsync(
                        () -> BrokerProcess.start(
                                directory.resolve("broker-" + member.nodeId()),
                                nodes == 1 ? config : config.withPort(ports.get(nodes + member.nodeId() - 1)),
                                javaOptions,
                                member.text()),
                        task -> new Thread(task, "start of broker " + member.nodeId()).start()))
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
        BrokerCluster cluster = new BrokerCluster(started);
        if (failure != null) {
            cluster.close();
            throw failure;
        }
        return cluster;
    }

    /** Held all at once, so that they differ; somebody else could take one before its broker does, which then says so. */
    private static List<Integer> freePorts(int count) {
        List<BoundPort> ports =
                IntStream.range(0, count).mapToObj(i -> BoundPort.open(0)).toList();
        List<Integer> numbers = ports.stream().map(BoundPort::number).toList();
        ports.forEach(BoundPort::close);
        return numbers;
    }

    /** Every broker's {@code host:port}, for {@code bootstrap.servers}. */
    public String bootstrapServers() {
        return brokers.stream().map(BrokerProcess::bootstrapServers).collect(Collectors.joining(","));
    }

    /** The nodes, by node id less one. */
    public List<BrokerProcess> brokers() {
        return brokers;
    }

    /** Stops all nodes at the same time; one that takes too long, for want of others to agree with, is killed. */
    @Override
    public void close() {
        CompletableFuture.allOf(brokers.stream()
                        .map(broker -> CompletableFuture.runAsync(
                                broker::close, task -> new Thread(task, "stop of broker " + broker.pid()).start()))
                        .toArray(CompletableFuture[]::new))
                .join();
    }
}
