package dev.millrace.learner;

import dev.millrace.infra.run.RunLog;
import dev.millrace.infra.topics.TopicsConfig;
import dev.millrace.learner.commit.VersionCommitter;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.stages.CorrectionConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.Producer;

/**
 * A learner in a process of its own, that can be killed as {@code kill -9} does. It prints a line before and after each call
 * to the broker that changes something there, so that whoever started it can kill it between any two of them.
 */
final class LearnerProcess implements AutoCloseable {
    private static final String CALL = "call ";

    private final Process process;
    private final BufferedReader output;

    LearnerProcess(String bootstrapServers, String prefix, int maxSteps) {
        List<String> command = List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx192m",
            "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"),
            LearnerProcess.class.getName(), bootstrapServers, prefix, Integer.toString(maxSteps));
        try {
            this.process = new ProcessBuilder(command).redirectErrorStream(true).start();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        this.output = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /**
     * Kills it when it has printed so many calls.
     *
     * @return the last call it printed; empty if it came to its end before
     */
    String killAt(int calls) throws IOException, InterruptedException {
        String last = "";
        int seen = 0;
        String line = output.readLine();
        while (line != null && seen <= calls) {
            if (line.startsWith(CALL)) {
                last = line.substring(CALL.length());
                if (seen++ == calls) {
                    process.destroyForcibly();
                }
            }
            line = output.readLine();
        }
        if (!process.waitFor(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("process " + process.pid() + " outlived its kill");
        }
        return seen > calls ? last : "";
    }

    /** Waits for its end, which must be a good one. */
    void end() throws IOException, InterruptedException {
        StringBuilder all = new StringBuilder();
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            if (!line.startsWith(CALL)) {
                all.append(line).append('\n');
            }
        }
        int status = process.waitFor();
        if (status != 0) {
            throw new IllegalStateException("the learner ended with " + status + ": " + all);
        }
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    /** @param args bootstrap servers, topic prefix, steps */
    public static void main(String[] args) {
        try (RunLog log = RunLog.join(
                 Map.of("bootstrap.servers", args[0]), new RunTopics(args[1]), SyntheticRollouts.RUN, TopicsConfig.defaults(), "");
             Learner learner = new Learner(log.connection(), LearnerIT.config(Integer.parseInt(args[2])),
                 CorrectionConfig.defaults(), LearnerIT.weights(),
                 InitialPolicy.random(SyntheticRollouts.SHAPE, SyntheticRollouts.TOKENIZER_HASH, SyntheticRollouts.SEED),
                 Engine.cpu(), new SimpleMeterRegistry(), Clock.systemUTC(), LearnerProcess::talking)) {
            learner.run();
        }
    }

    @SuppressWarnings("unchecked")
    private static Producer<byte[], byte[]> talking(Map<String, Object> properties) {
        Producer<byte[], byte[]> real = VersionCommitter.Producers.kafka().create(properties);
        return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
            LearnerProcess.class.getClassLoader(), new Class<?>[] {Producer.class}, (proxy, method, arguments) -> {
                System.out.println(CALL + "before " + method.getName());
                try {
                    return method.invoke(real, arguments);
                } catch (InvocationTargetException e) {
                    throw e.getCause();
                } finally {
                    System.out.println(CALL + "after " + method.getName());
                }
            });
    }
}
