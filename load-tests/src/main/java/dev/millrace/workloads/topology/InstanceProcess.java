package dev.millrace.workloads.topology;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.JsonFile;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;

/**
 * An instance of the topology in its own process, to be stopped, killed, and asked for its heap.
 *
 * <p>The child ends with its standard input, so also with its parent. It prints {@code started} in main and {@code
 * running} once it has partitions, and answers {@code heap} with that word and the live bytes after a full
 * collection; other lines are the machine's. Its log lies next to its state.
 */
public final class InstanceProcess implements AutoCloseable {
    /** System property: JVM options of the child, separated by spaces. */
    private static final String OPTIONS = "millrace.instance.options";

    private static final long LIMIT_S = 300;
    private static final String HEAP = "heap";
    private static final String STARTED = "started";
    private static final String RUNNING = "running";

    public record Settings(TopologyConfig topology, AlgorithmPlan algorithm, TopicsConfig topics) {}

    private final Process process;
    private final Path log;
    private final PrintWriter requests;
    private final BufferedReader answers;
    private boolean running;

    private InstanceProcess(Process process, Path log) {
        this.process = process;
        this.log = log;
        this.requests =
                new PrintWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8), true);
        this.answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /**
     * Starts an instance without waiting for it.
     *
     * @param state its directory, new; log and configuration lie next to it
     */
    public static InstanceProcess start(
            String bootstrapServers, String run, Path state, String instanceId, int heapMegabytes, Settings settings) {
        TopologyConfig config = settings.topology();
        Path log = state.resolveSibling(state.getFileName() + ".log");
        Path file = state.resolveSibling(state.getFileName() + ".json");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(InstanceProcess::isOfTheMachine)
                .forEach(command::add);
        Arrays.stream(System.getProperty(OPTIONS, "").split(" "))
                .filter(option -> !option.isEmpty())
                .forEach(command::add);
        command.add("-D" + Catalogue.PATH + "=" + Catalogue.current().path());
        command.addAll(List.of(
                "-Xmx" + heapMegabytes + "m",
                "-cp",
                System.getProperty("java.class.path"),
                InstanceProcess.class.getName(),
                bootstrapServers,
                run,
                state.toString(),
                file.toString()));
        try {
            JsonFile.write(
                    file,
                    new Settings(
                            config.with(config.runtime().with(config.runtime().threads(), instanceId)),
                            settings.algorithm(),
                            settings.topics()));
            return new InstanceProcess(
                    new ProcessBuilder(command)
                            .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                            .start(),
                    log);
        } catch (IOException e) {
            throw new LoadException("an instance of the topology did not start: " + e.getMessage(), e);
        }
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /** First line of its log that names an error, else the last line. */
    public String lastWords() {
        try {
            List<String> lines = Files.readAllLines(log);
            return lines.stream()
                    .filter(line -> line.contains("Error") || line.contains("Exception"))
                    .findFirst()
                    .orElse(lines.isEmpty() ? "nothing" : lines.get(lines.size() - 1));
        } catch (IOException e) {
            return "its log cannot be read: " + e.getMessage();
        }
    }

    /** The child inherits collector and class archive, not heap, agents or properties. */
    private static boolean isOfTheMachine(String argument) {
        return argument.startsWith("-XX:") && !argument.contains("Heap") && !argument.contains("ArchiveClassesAtExit")
                || argument.startsWith("-Xlog:")
                || argument.startsWith("--");
    }

    public void awaitMain() throws InterruptedException {
        answer(STARTED::equals, "that it has started");
    }

    public void awaitRunning() throws InterruptedException {
        if (!running) {
            answer(RUNNING::equals, "that it is running");
            running = true;
        }
    }

    public long heapBytes() throws InterruptedException {
        requests.println(HEAP);
        String line = answer(found -> found.startsWith(HEAP + " "), "how large its heap is");
        return Long.parseLong(line.substring(HEAP.length() + 1));
    }

    private String answer(Predicate<String> wanted, String what) throws InterruptedException {
        CompletableFuture<String> found = CompletableFuture.supplyAsync(() -> {
            try {
                for (String line = answers.readLine(); line != null; line = answers.readLine()) {
                    if (wanted.test(line)) {
                        return line;
                    }
                }
                throw new LoadException("its output ended");
            } catch (IOException e) {
                throw new LoadException("it cannot be read: " + e.getMessage(), e);
            }
        });
        try {
            return found.get(LIMIT_S, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException e) {
            throw new LoadException(
                    "an instance of the topology did not say " + what + " within " + LIMIT_S + " s: " + e.getMessage(),
                    e);
        }
    }

    public void kill() throws InterruptedException {
        process.destroyForcibly();
        awaitEnd();
    }

    public void stop() throws InterruptedException {
        requests.close(); // its standard input: the child stops when that ends
        awaitEnd();
    }

    private void awaitEnd() throws InterruptedException {
        if (!process.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new LoadException("an instance of the topology was still there after " + LIMIT_S + " s");
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    public static void main(String[] args) throws IOException {
        System.out.println(STARTED);
        Settings settings = JsonFile.read(Path.of(args[3]), Settings.class);
        try (RunLog log = RunLog.join(
                Map.of("bootstrap.servers", args[0]),
                new RunTopics(args[1] + "."),
                new RunIdentity(args[1], 0, "policy"),
                settings.topics(),
                "")) {
            TopologyRunner runner = new TopologyRunner(
                    settings.topology(),
                    settings.algorithm().algorithm(),
                    log.connection(),
                    Path.of(args[2]),
                    new SimpleMeterRegistry());
            Thread listener = new Thread(() -> listen(runner), "requests");
            listener.setDaemon(true);
            listener.start();
            Thread announcer = new Thread(() -> announce(runner), "announcement");
            announcer.setDaemon(true);
            announcer.start();
            runner.run();
        }
    }

    private static void announce(TopologyRunner runner) {
        try {
            BoundedWait.await("the topology to run", Duration.ofSeconds(LIMIT_S), runner::isRunning);
            System.out.println(RUNNING);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void listen(TopologyRunner runner) {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals(HEAP)) {
                    ManagementFactory.getMemoryMXBean().gc();
                    System.out.println(HEAP + " "
                            + ManagementFactory.getMemoryMXBean()
                                    .getHeapMemoryUsage()
                                    .getUsed());
                }
            }
        } catch (IOException e) {
            // no parent any more: as if it had ended the input
        }
        runner.stop();
    }
}
