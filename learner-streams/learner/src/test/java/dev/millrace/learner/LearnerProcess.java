package dev.millrace.learner;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.learner.step.LoraConfig;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.run.RunTopics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.Producer;

/**
 * A learner of the synthetic policy in a process of its own, which can be killed at any moment and prints its position
 * in a step.
 */
final class LearnerProcess {
    /** Before a moment's name on the child's output, which log lines share. */
    private static final String SAYS = "moment ";
    /** The process has reached its main. */
    static final String MAIN = "main";
    /** A transaction is committed, and the learner is notified. */
    static final String COMMITTED = "committed";

    private final Process process;
    private final Thread reader;
    private final List<String> moments = new ArrayList<>();

    private LearnerProcess(Process process, File log) {
        this.process = process;
        this.reader = new Thread(() -> read(log), "output of learner " + process.pid());
        reader.setDaemon(true);
        reader.start();
    }

    /** @param log takes what it logs */
    static LearnerProcess start(String bootstrapServers, String prefix, int maxSteps, File log) {
        try {
            ProcessBuilder child = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin", "java")
                                    .toString(),
                            "-Xmx256m",
                            "-XX:+UseSerialGC",
                            "-XX:TieredStopAtLevel=1",
                            "-Djava.awt.headless=true",
                            LearnerProcess.class.getName(),
                            bootstrapServers,
                            prefix,
                            Integer.toString(maxSteps))
                    .redirectError(ProcessBuilder.Redirect.appendTo(log));
            child.environment().put("CLASSPATH", System.getProperty("java.class.path"));
            return new LearnerProcess(child.start(), log);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Other lines are log lines or JVM messages. */
    private void read(File log) {
        try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8);
                PrintStream others = new PrintStream(new FileOutputStream(log, true), true, StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(SAYS)) {
                    said(line.substring(SAYS.length()));
                } else {
                    others.println(line);
                }
            }
        } catch (IOException killed) {
            said("killed");
        }
    }

    private synchronized void said(String moment) {
        moments.add(moment);
        notifyAll();
    }

    /** Waits until the process has printed this {@code times} times. */
    synchronized void await(String moment, int times, long limitMs) throws InterruptedException {
        long deadline = System.nanoTime() + limitMs * 1_000_000;
        while (moments.stream().filter(moment::equals).count() < times) {
            if (!reader.isAlive()) {
                throw new IllegalStateException("learner " + process.pid() + " ended with status " + process.waitFor()
                        + " before it had said '" + moment + "' " + times + " times; it has said " + moments);
            }
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("learner " + process.pid() + " has not said '" + moment + "' " + times
                        + " times within " + limitMs + " ms; it has said " + moments);
            }
            wait(20);
        }
    }

    /** As a crash: the process gets no chance to do anything. What it said last, empty if it never reached its main. */
    String kill() throws InterruptedException {
        process.destroyForcibly();
        awaitEnd(30_000);
        synchronized (this) {
            return moments.isEmpty() ? "" : moments.get(moments.size() - 1);
        }
    }

    /** Its exit status. */
    int awaitEnd(long limitMs) throws InterruptedException {
        if (!process.waitFor(limitMs, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("learner " + process.pid() + " has not ended within " + limitMs + " ms");
        }
        reader.join(limitMs);
        return process.exitValue();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    /** @param args bootstrap servers, topic prefix, steps after which it ends */
    public static void main(String[] args) {
        PrintStream out = System.out;
        say(out, MAIN);
        LearnerConfig usual = LearnerIT.config(Integer.parseInt(args[2]));
        try (RunLog log = RunLog.join(
                        Map.of("bootstrap.servers", args[0]),
                        new RunTopics(args[1]),
                        SyntheticRollouts.RUN,
                        TopicsConfig.defaults(),
                        "");
                Learner learner = new Learner(
                        new LearnerContext(
                                log.connection(),
                                new LearnerConfig(
                                        usual.step(), LoraConfig.off(), usual.maxSteps(), 30_000, 64 << 20, 30_000),
                                LearnerIT.weights(),
                                InitialPolicy.random(
                                        SyntheticRollouts.SHAPE,
                                        SyntheticRollouts.TOKENIZER_HASH,
                                        SyntheticRollouts.SEED),
                                new SimpleMeterRegistry(),
                                Clock.systemUTC(),
                                speaking(out)),
                        Algorithm.defaults().with(a -> a.mode(Mode.RECORDED)),
                        Engine.cpu())) {
            learner.run();
        }
    }

    /** Real producers that print the start of their calls and the answer of commits. */
    @SuppressWarnings("unchecked")
    private static VersionCommitter.Producers speaking(PrintStream out) {
        return properties -> {
            Producer<byte[], byte[]> real = VersionCommitter.Producers.kafka().create(properties);
            return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
                    LearnerProcess.class.getClassLoader(),
                    new Class<?>[] {Producer.class},
                    (proxy, method, arguments) -> {
                        say(out, method.getName());
                        try {
                            Object result = method.invoke(real, arguments);
                            if (method.getName().equals("commitTransaction")) {
                                say(out, COMMITTED);
                            }
                            return result;
                        } catch (InvocationTargetException e) {
                            throw e.getCause();
                        }
                    });
        };
    }

    private static void say(PrintStream out, String moment) {
        out.println(SAYS + moment);
        out.flush();
    }
}
