package dev.millrace.cli.run;

import dev.millrace.cli.start.PackagedCommand;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * {@code millrace} as a user runs it: a process of its own from the packaged jars, watched through what it prints.
 *
 * <p>Closing it ends the process if it is still there.
 */
final class TrainProcess implements AutoCloseable {
    /** Longest silence on a machine that does ten other things; a run that works needs a tenth of it. */
    static final Duration PATIENCE = Duration.ofMinutes(20);

    private static final Pattern STEP = Pattern.compile("  step (\\d+)  ");
    private static final List<String> INTERRUPTIBLE = List.of("env", "--default-signal=INT");

    private final Process process;
    private final List<String> out = new ArrayList<>();
    private final List<String> err = new ArrayList<>();
    private final Thread outReader;
    private final Thread errReader;

    private TrainProcess(Process process) {
        this.process = process;
        this.outReader = reader(process.getInputStream(), out);
        this.errReader = reader(process.getErrorStream(), err);
    }

    /** {@code millrace} with these arguments, in this folder. */
    static TrainProcess start(Path workingDirectory, List<String> arguments) {
        return start(workingDirectory, arguments, Map.of());
    }

    /** {@code millrace} with these arguments, in this folder, with these variables in its environment. */
    static TrainProcess start(Path workingDirectory, List<String> arguments, Map<String, String> environment) {
        return start(PackagedCommand.words(), workingDirectory, arguments, environment);
    }

    /** {@code millrace} of another build, whose jars are in a folder. */
    static TrainProcess ofBuild(Path libraries, Path workingDirectory, List<String> arguments) {
        return start(PackagedCommand.words(libraries), workingDirectory, arguments, Map.of());
    }

    private static TrainProcess start(
            List<String> millrace, Path workingDirectory, List<String> arguments, Map<String, String> environment) {
        List<String> command = new ArrayList<>();
        if (exitStatus(List.of("env", "--default-signal=INT", "true")) == 0) {
            command.addAll(INTERRUPTIBLE); // a build in the background ignores SIGINT, and its children would too
        }
        command.addAll(millrace);
        command.addAll(arguments);
        try {
            ProcessBuilder builder = new ProcessBuilder(command).directory(workingDirectory.toFile());
            builder.environment().putAll(environment);
            return new TrainProcess(builder.start());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** {@code millrace train --run-dir DIRECTORY} with further arguments, in the folder that holds the directory. */
    static TrainProcess train(Path runDirectory, String... arguments) {
        List<String> all = new ArrayList<>(
                List.of("train", "--run-dir", runDirectory.getFileName().toString()));
        all.addAll(List.of(arguments));
        return start(runDirectory.getParent(), all);
    }

    private static int exitStatus(List<String> command) {
        try {
            return new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start()
                    .waitFor();
        } catch (IOException noSuchCommand) {
            return -1;
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private Thread reader(InputStream stream, List<String> lines) {
        Thread thread = new Thread(
                () -> {
                    try (BufferedReader reader =
                            new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
                        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                            synchronized (this) {
                                lines.add(line);
                                notifyAll();
                            }
                        }
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    }
                },
                "output of " + process.pid());
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Waits for a line on standard output in which the pattern is found. */
    Matcher awaitLine(String pattern) throws InterruptedException {
        Pattern compiled = Pattern.compile(pattern);
        return await(
                line -> {
                    Matcher matcher = compiled.matcher(line);
                    return matcher.find() ? matcher : null;
                },
                "a line with " + pattern);
    }

    /** Waits for at least this many steps of the run; returns how many there are. */
    long awaitStep(long least) throws InterruptedException {
        return await(
                line -> {
                    Matcher matcher = STEP.matcher(line);
                    return matcher.find() && Long.parseLong(matcher.group(1)) >= least
                            ? Long.valueOf(matcher.group(1))
                            : null;
                },
                "step " + least);
    }

    private interface Sought<T> {
        T in(String line);
    }

    private synchronized <T> T await(Sought<T> sought, String what) throws InterruptedException {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        int seen = 0;
        while (true) {
            for (; seen < out.size(); seen++) {
                T found = sought.in(out.get(seen));
                if (found != null) {
                    return found;
                }
            }
            long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            if (left <= 0 || !outReader.isAlive() && seen == out.size()) {
                throw new AssertionError(
                        "no " + what + (left <= 0 ? " within " + PATIENCE.toSeconds() + " s" : "") + ":\n" + this);
            }
            wait(Math.min(left, 200)); // the end of the output comes without a notification
        }
    }

    /** Sends a signal by its name, such as INT. */
    void signal(String name) {
        if (exitStatus(List.of("kill", "-" + name, Long.toString(process.pid()))) != 0) {
            throw new AssertionError("kill -" + name + " was refused:\n" + this);
        }
    }

    /** Waits for the process and its output to end; returns its exit status. */
    int awaitExit(Duration limit) throws InterruptedException {
        if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
            throw new AssertionError("still running after " + limit.toSeconds() + " s:\n" + this);
        }
        outReader.join();
        errReader.join();
        return process.exitValue();
    }

    /** Standard output so far. */
    synchronized List<String> out() {
        return List.copyOf(out);
    }

    /** Standard error so far. */
    synchronized List<String> err() {
        return List.copyOf(err);
    }

    @Override
    public synchronized String toString() {
        return "  " + process.info().commandLine().orElse("ended") + "\n  out: " + String.join("\n  out: ", out)
                + "\n  err: " + String.join("\n  err: ", err);
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
