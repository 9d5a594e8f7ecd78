package dev.millrace.runtime.tensorboard;

import dev.millrace.log.alarm.Alarms;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.metrics.StepReading;
import dev.millrace.runtime.metrics.StepReadings;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.run.RunIdentity;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The run's steps as TensorBoard's event files, in a folder of the run's name; of a run that was rolled back, each epoch has a folder
 * of its own.
 *
 * <p>Fed with every step of the run from its first: those that the folder has already are passed over. A process that goes on begins
 * a new file, which TensorBoard reads as the continuation of those before it. One process writes a folder at a time. Where writing
 * fails, an alarm says so and nothing more is written; the next start writes what is missing, out of the training log. Used by one
 * thread.
 */
public final class EventFiles implements AutoCloseable {
    private static final String ALARM = "curves-unwritten";
    private static final String PREFIX = "events.out.tfevents.";

    private final Path folder;
    private final Alarms alarms;
    private final FileChannel lock;
    private long lastStep;
    private boolean failed;
    private @Nullable FileChannel file;

    private EventFiles(Path folder, Alarms alarms, FileChannel lock, long lastStep) {
        this.folder = folder;
        this.alarms = alarms;
        this.lock = lock;
        this.lastStep = lastStep;
    }

    /**
     * Takes the run's folder.
     *
     * @param directory what TensorBoard is given as its {@code --logdir}
     * @throws RefusedRequestException if it cannot be written, or another process writes it
     */
    public static EventFiles open(Path directory, RunIdentity run, Alarms alarms) {
        Path folder = directory.resolve(run.runId() + (run.epoch() == 0 ? "" : "-epoch-" + run.epoch()));
        try {
            Files.createDirectories(folder);
            FileChannel lock = FileChannel.open(
                    folder.resolve("writer.lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            try {
                if (!isTaken(lock)) {
                    return new EventFiles(folder, alarms, lock, lastStep(folder));
                }
                lock.close();
            } catch (IOException e) {
                lock.close();
                throw e;
            }
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot write TensorBoard's files to " + folder + " (" + e
                            + "); choose another metrics.tensorboard.directory",
                    e);
        }
        throw new RefusedRequestException("another process writes TensorBoard's files to " + folder
                + "; give metrics.tensorboard.directory to one process of a run only");
    }

    private static boolean isTaken(FileChannel lock) throws IOException {
        try {
            return lock.tryLock() == null;
        } catch (OverlappingFileLockException e) {
            return true; // by this very process
        }
    }

    private static long lastStep(Path folder) throws IOException {
        long[] last = {0};
        for (Path file : files(folder)) {
            EventFraming.read(file, record -> last[0] = Math.max(last[0], EventRecord.step(record)));
        }
        return last[0];
    }

    private static List<Path> files(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.getFileName().toString().startsWith(PREFIX))
                    .sorted()
                    .toList();
        }
    }

    /** Writes a step, unless it is there. */
    public void write(StepRow step) {
        if (failed || step.step() <= lastStep) {
            return;
        }
        try {
            double wallSeconds = step.finishedAtMs() / 1e3;
            if (file == null) {
                file = begun(wallSeconds);
            }
            append(file, EventRecord.ofStep(wallSeconds, step.step(), curves(step)));
            lastStep = step.step();
        } catch (IOException e) {
            failed = true;
            alarms.raise(
                    ALARM,
                    folder.toString(),
                    "step " + step.step() + " and those after it are not in TensorBoard's files in " + folder + ": "
                            + e,
                    "make room or mend the folder; the next start of this process writes what is missing");
        }
    }

    /** A number of 32 bits cannot say when something was to the second, and wall time says it already. */
    private static List<StepReading> curves(StepRow step) {
        return StepReadings.of(step).stream()
                .filter(reading -> !reading.curve().endsWith("_at_ms"))
                .toList();
    }

    /** A new file, whose name comes behind those of all others: TensorBoard reads them in that order. */
    private FileChannel begun(double wallSeconds) throws IOException {
        List<Path> before = files(folder);
        for (long seconds = (long) wallSeconds; ; seconds++) {
            Path next = folder.resolve(PREFIX + String.format(Locale.ROOT, "%010d", seconds) + ".millrace");
            if (before.isEmpty() || before.get(before.size() - 1).compareTo(next) < 0) {
                FileChannel begun = FileChannel.open(next, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
                append(begun, EventRecord.ofVersion(wallSeconds));
                return begun;
            }
        }
    }

    private static void append(FileChannel file, byte[] record) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(EventFraming.framed(record));
        while (bytes.hasRemaining()) {
            file.write(bytes);
        }
    }

    @Override
    public void close() {
        try (lock) {
            if (file != null) {
                file.close();
            }
        } catch (IOException e) {
            throw new RefusedRequestException("cannot close TensorBoard's files in " + folder + ": " + e, e);
        }
    }
}
