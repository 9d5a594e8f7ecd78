package dev.millrace.infra.broker;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A broker in a process of its own, with a heap of its own, that can be killed; alone unless it is a {@link BrokerCluster}'s.
 *
 * <p>The child ends with this process, even after a kill. It logs to a file next to its directory, with the directory's name and
 * {@code .log}. Thread-safe.
 */
public final class BrokerProcess implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BrokerProcess.class);
    private static final List<String> SMALL_JVM = List.of("-Xmx256m", "-XX:+UseSerialGC");
    private static final long KILL_LIMIT_MS = 10_000;

    private final BrokerConfig config;
    private final Path log;
    private final Process process;
    /** The line in which the child says that it is ready or has failed. */
    private final CompletableFuture<String> verdict = new CompletableFuture<>();
    /** What prevented the sync that was asked for last; empty if it is done. */
    private volatile CompletableFuture<String> synced = new CompletableFuture<>();

    /** Known once the broker serves; nobody is given this before. */
    private String bootstrapServers = "";

    private BrokerProcess(BrokerConfig config, Path log, Process process) {
        this.config = config;
        this.log = log;
        this.process = process;
        Thread output = new Thread(this::readOutput, "output of broker " + process.pid());
        output.setDaemon(true);
        output.start();
    }

    /** As {@link #start(Path, BrokerConfig, List)} with a heap of 256 MiB. */
    public static BrokerProcess start(Path directory, BrokerConfig config) {
        return start(directory, config, SMALL_JVM);
    }

    /**
     * Starts the process and returns when the broker in it serves.
     *
     * @param javaOptions options of its JVM, such as its heap
     * @throws BrokerException if it does not come up in time, with the child's reason
     */
    public static BrokerProcess start(Path directory, BrokerConfig config, List<String> javaOptions) {
        return start(directory, config, javaOptions, List.of());
    }

    /** @param node cluster, node id and Kafka settings; empty for a cluster of one */
    static BrokerProcess start(Path directory, BrokerConfig config, List<String> javaOptions, List<String> node) {
        Path home = directory.toAbsolutePath().normalize();
        Path log = home.resolveSibling(home.getFileName() + ".log");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(javaOptions);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), BrokerMain.class.getName()));
        command.addAll(List.of(BrokerMain.arguments(home, config)));
        command.addAll(node);
        BrokerProcess started;
        try {
            started = new BrokerProcess(
                    config,
                    log,
                    new ProcessBuilder(command)
                            .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                            .start());
        } catch (IOException e) {
            throw new BrokerException("the broker's process did not start: " + e.getMessage(), e);
        }
        try {
            started.awaitReady();
            return started;
        } catch (BrokerException e) {
            started.kill();
            throw e;
        }
    }

    /** {@code host:port}, for {@code bootstrap.servers}. */
    public String bootstrapServers() {
        return bootstrapServers;
    }

    /** The broker's port, for a start on the same one. */
    public int port() {
        return Integer.parseInt(bootstrapServers.substring(bootstrapServers.lastIndexOf(':') + 1));
    }

    public long pid() {
        return process.pid();
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /**
     * {@link EmbeddedBroker#sync} of the broker in the process. Calls take turns.
     *
     * @throws BrokerException if the broker cannot, or does not answer within twice the limit of its start
     */
    public synchronized void sync(Collection<String> topics, String transactionalId) {
        synced = new CompletableFuture<>();
        String prevented;
        try {
            process.getOutputStream()
                    .write((transactionalId + " " + String.join(" ", topics) + "\n").getBytes(StandardCharsets.UTF_8));
            process.getOutputStream().flush();
            prevented = synced.get(2 * config.startTimeoutMs(), TimeUnit.MILLISECONDS);
        } catch (IOException | ExecutionException | TimeoutException e) {
            throw new BrokerException("broker " + process.pid() + " did not sync: " + e + "; its log is " + log, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BrokerException("interrupted while broker " + process.pid() + " syncs", e);
        }
        if (!prevented.isEmpty()) {
            throw new BrokerException(prevented);
        }
    }

    /** Ends the process at once, as a failing machine would, and waits until it is gone. */
    public void kill() {
        process.destroyForcibly();
        if (!gone(KILL_LIMIT_MS)) {
            throw new BrokerException(
                    "process " + process.pid() + " is still there " + KILL_LIMIT_MS + " ms after it was killed");
        }
    }

    /** Stops the broker in order; kills it, and says so in the log, if it takes longer than the settings allow. */
    @Override
    public void close() {
        if (!process.isAlive()) {
            return;
        }
        try {
            process.getOutputStream().close(); // its standard input: the child stops when that ends
        } catch (IOException e) {
            LOG.warn("standard input of broker {} could not be closed: {}", process.pid(), e.getMessage());
        }
        if (!gone(config.stopTimeoutMs())) {
            LOG.error("broker {} was not down after {} ms and is killed", process.pid(), config.stopTimeoutMs());
            kill();
        }
    }

    private void awaitReady() {
        try {
            String line = verdict.get(config.startTimeoutMs(), TimeUnit.MILLISECONDS);
            if (line.startsWith(BrokerMain.FAILED)) {
                throw new BrokerException(line.substring(BrokerMain.FAILED.length()));
            }
            bootstrapServers = line.substring(BrokerMain.READY.length());
        } catch (TimeoutException e) {
            throw new BrokerException(
                    "the broker's process did not serve within start_timeout_ms=" + config.startTimeoutMs()
                            + "; its log is " + log,
                    e);
        } catch (ExecutionException e) {
            throw new BrokerException(
                    "the broker's process ended before it served; its log is " + log,
                    Objects.requireNonNullElse(e.getCause(), e));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BrokerException("interrupted while the broker's process starts", e);
        }
    }

    private boolean gone(long limitMs) {
        try {
            return process.waitFor(limitMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return !process.isAlive();
        }
    }

    /** Reads to the end, so that the child never waits for somebody to read. */
    private void readOutput() {
        try (BufferedReader reader =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                if (line.startsWith(BrokerMain.FAILED) && verdict.isDone()) {
                    LOG.error("broker {}: {}", process.pid(), line.substring(BrokerMain.FAILED.length()));
                }
                if (line.startsWith(BrokerMain.SYNCED)) {
                    synced.complete(line.substring(BrokerMain.SYNCED.length()));
                }
                if (line.startsWith(BrokerMain.READY) || line.startsWith(BrokerMain.FAILED)) {
                    verdict.complete(line);
                }
            }
        } catch (IOException e) {
            verdict.completeExceptionally(e);
        }
        verdict.completeExceptionally(new BrokerException("its output ended"));
        synced.completeExceptionally(new BrokerException("its output ended"));
    }
}
