package dev.millrace.loadtests.topology;

import dev.millrace.infra.run.RunLog;
import dev.millrace.infra.topics.TopicsConfig;
import dev.millrace.loadtests.synthetic.LoadException;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.topology.batch.BatchConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * One instance of the topology in a process of its own: it can be stopped, killed, and asked for its heap.
 *
 * <p>The child runs until its standard input ends, which it also does when the parent dies. A line {@code heap} is
 * answered with the live bytes after a full collection. What it logs goes to a file beside its state.
 */
public final class InstanceProcess implements AutoCloseable {
    private static final long LIMIT_S = 60;
    private static final String HEAP = "heap";

    private final Process process;
    private final PrintWriter requests;
    private final BufferedReader answers;

    private InstanceProcess(Process process) {
        this.process = process;
        this.requests = new PrintWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8), true);
        this.answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /**
     * Starts an instance; it is not running yet when this returns.
     *
     * @param run whose log is on {@code bootstrapServers}, under the prefix of its id and a dot
     * @param heapMegabytes most heap of the child
     * @param batch when it cuts batches
     */
    public static InstanceProcess start(
            String bootstrapServers, String run, Path state, String instanceId, int heapMegabytes, BatchConfig batch) {
        Path log = state.resolveSibling(state.getFileName() + ".log");
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx" + heapMegabytes + "m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"),
            InstanceProcess.class.getName(), bootstrapServers, run, state.toString(), instanceId,
            Integer.toString(batch.sequences()), Integer.toString(batch.maxOutstanding())));
        try {
            return new InstanceProcess(new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile())).start());
        } catch (IOException e) {
            throw new LoadException("an instance of the topology did not start: " + e.getMessage(), e);
        }
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /** Live heap after a full collection, bytes. */
    public long heapBytes() throws InterruptedException {
        requests.println(HEAP);
        CompletableFuture<String> answer = CompletableFuture.supplyAsync(() -> {
            try {
                return String.valueOf(answers.readLine());
            } catch (IOException e) {
                throw new LoadException("the instance does not answer: " + e.getMessage(), e);
            }
        });
        try {
            return Long.parseLong(answer.get(LIMIT_S, TimeUnit.SECONDS));
        } catch (ExecutionException | TimeoutException | NumberFormatException e) {
            throw new LoadException("the instance did not say how large its heap is (is it out of memory?): " + e.getMessage(), e);
        }
    }

    /** Ends it at once, as a failing machine would. */
    public void kill() throws InterruptedException {
        process.destroyForcibly();
        awaitEnd();
    }

    /** Stops it in order, and waits until it has left. */
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

    /** Makes sure that it is gone. */
    @Override
    public void close() {
        process.destroyForcibly();
    }

    /** @param args bootstrap servers, run, state directory, instance id, sequences of a batch, batches ahead of the learner */
    public static void main(String[] args) throws IOException {
        TopologyConfig config = TopologyConfig.defaults();
        config = config.with(config.runtime().with(1, args[3]))
            .with(new BatchConfig(Integer.parseInt(args[4]), 0, BatchConfig.Order.COMPLETION, Integer.parseInt(args[5])));
        try (RunLog log = RunLog.join(Map.of("bootstrap.servers", args[0]), new RunTopics(args[1] + "."),
                new RunIdentity(args[1], 0, "policy"), TopicsConfig.defaults(), "")) {
            TopologyRunner runner = new TopologyRunner(config, log.connection(), Path.of(args[2]), new SimpleMeterRegistry());
            Thread listener = new Thread(() -> listen(runner), "requests");
            listener.setDaemon(true);
            listener.start();
            runner.run();
        }
    }

    private static void listen(TopologyRunner runner) {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals(HEAP)) {
                    ManagementFactory.getMemoryMXBean().gc();
                    System.out.println(ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
                }
            }
        } catch (IOException e) {
            // no parent any more: as if it had ended the input
        }
        runner.stop();
    }
}
