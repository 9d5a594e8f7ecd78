package dev.millrace.generator.environment.remote;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One run of the user's command: a line in, a line out. What it writes to its error stream is logged.
 *
 * <p>Used by one thread. After an {@link IOException} it is of no use any more.
 */
final class WorkerProcess {
    private static final Logger LOG = LoggerFactory.getLogger(WorkerProcess.class);
    private static final int LONGEST_LOG_LINE = 2_000;
    private static final long END_LIMIT_MS = 2_000;

    private final String command;
    private final ScheduledExecutorService clock;
    private final Process process;
    private final InputStream answers;
    private final Thread listener;
    private volatile String lastComplaint = "";

    private WorkerProcess(String command, ScheduledExecutorService clock, Process process) {
        this.command = command;
        this.clock = clock;
        this.process = process;
        this.answers = new BufferedInputStream(process.getInputStream());
        this.listener = new Thread(this::listen, "partner-errors-" + process.pid());
        listener.setDaemon(true);
        listener.start();
    }

    static WorkerProcess start(String command, ScheduledExecutorService clock) throws IOException {
        Process process = new ProcessBuilder("/bin/sh", "-c", command).start();
        return new WorkerProcess(command, clock, process);
    }

    private void listen() {
        try (InputStream errors = new BufferedInputStream(process.getErrorStream())) {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            for (int b = errors.read(); b >= 0; b = errors.read()) {
                if (b != '\n') {
                    if (line.size() < LONGEST_LOG_LINE) {
                        line.write(b);
                    }
                    continue;
                }
                tell(line);
                line.reset();
            }
            tell(line);
        } catch (IOException e) {
            // it has ended
        }
    }

    private void tell(ByteArrayOutputStream line) {
        String text = line.toString(StandardCharsets.UTF_8).strip();
        if (!text.isEmpty()) {
            lastComplaint = text;
            LOG.info("'{}' ({}): {}", command, process.pid(), text);
        }
    }

    /**
     * Asks and waits.
     *
     * @param longest answer, in bytes
     * @throws IOException with a clause that says why there is no answer; the process is ended
     */
    byte[] exchange(byte[] question, int limitMs, int longest) throws IOException {
        AtomicBoolean isDecided = new AtomicBoolean(); // by the answer or by the limit, whichever is first
        Future<?> limit = clock.schedule(
                () -> {
                    if (isDecided.compareAndSet(false, true)) {
                        kill();
                    }
                },
                limitMs,
                TimeUnit.MILLISECONDS);
        boolean isOverdue = false;
        try {
            if (answers.available() > 0) {
                throw new IOException("it wrote a line that nobody asked for");
            }
            write(question);
            byte[] answer = line(longest);
            isOverdue = !isDecided.compareAndSet(false, true);
            if (isOverdue) {
                throw new IOException("it answered after its limit");
            }
            return answer;
        } catch (IOException e) {
            isOverdue |= !isDecided.compareAndSet(false, true);
            kill();
            throw isOverdue
                    ? new IOException(
                            "it has not answered within " + limitMs
                                    + " ms (timeout_ms); it must write one line for each that it reads, and flush it",
                            e)
                    : e;
        } finally {
            limit.cancel(false);
        }
    }

    private void write(byte[] question) throws IOException {
        OutputStream questions = process.getOutputStream();
        try {
            questions.write(question);
            questions.write('\n');
            questions.flush();
        } catch (IOException e) {
            throw new IOException(end(), e);
        }
    }

    private byte[] line(int longest) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        while (true) {
            int b = answers.read();
            if (b < 0) {
                throw new IOException(end());
            }
            if (b == '\n') {
                if (!line.toString(StandardCharsets.UTF_8).isBlank()) {
                    return line.toByteArray();
                }
                line.reset();
                continue;
            }
            if (line.size() >= longest) {
                throw new IOException("its answer is longer than " + longest + " bytes (answer_bytes)");
            }
            line.write(b);
        }
    }

    private String end() {
        try {
            String status = process.waitFor(END_LIMIT_MS, TimeUnit.MILLISECONDS)
                    ? "it ended with status " + process.exitValue()
                    : "it closed its output";
            listener.join(END_LIMIT_MS); // what it complained of last
            return lastComplaint.isEmpty() ? status : status + "; the last that it complained: " + lastComplaint;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "it ended";
        }
    }

    /** Tells it the end of its input, and ends it if it does not end by itself. */
    void close() {
        try {
            process.getOutputStream().close();
            if (process.waitFor(END_LIMIT_MS, TimeUnit.MILLISECONDS)) {
                return;
            }
        } catch (IOException e) {
            // it has ended already, or is ended now
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        kill();
    }

    /** Ends it, and then what it started: it must not go on because a command of its own has ended. */
    void kill() {
        List<ProcessHandle> started = process.descendants().toList();
        process.destroyForcibly();
        started.forEach(ProcessHandle::destroyForcibly);
    }
}
