package dev.millrace.runtime.metrics;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.WireFormat;
import dev.millrace.log.Alarms;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.schemas.run.RunIdentity;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Writes the run's steps or evaluations as TensorBoard event files, in a folder named like the run; after a rollback
 * each epoch has its own folder.
 *
 * <p>Takes every step of the run from its first, or every evaluation, and skips those that the folder already has. A
 * process that continues begins a new file, which TensorBoard reads as the continuation of those before it. One process
 * writes a folder at a time. If writing fails, an alarm is raised and writing stops; the next start writes the missing
 * steps from the training log. Used by one thread.
 */
public final class EventFiles implements AutoCloseable {
    /** The alarm that curves are missing. */
    public static final String ALARM = "curves-unwritten";

    private static final int PROMPTS_DIGITS = 8;
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
     * The folder of a run's steps.
     *
     * @param directory TensorBoard's {@code --logdir}
     */
    public static Path ofRun(Path directory, RunIdentity run) {
        return directory.resolve(run.runId() + (run.epoch() == 0 ? "" : "-epoch-" + run.epoch()));
    }

    /**
     * The folder of a run's evaluations on some prompts, in that of the run: TensorBoard shows it as a run of its own, since the
     * step of an evaluation is the version that it is of.
     *
     * @param dataSha256 identity of the prompts; evaluations on others start anew
     */
    public static Path heldOut(Path directory, RunIdentity run, String dataSha256) {
        return ofRun(directory, run)
                .resolve("held-out-" + dataSha256.substring(0, Math.min(PROMPTS_DIGITS, dataSha256.length())));
    }

    /**
     * Takes a folder.
     *
     * @throws RefusedRequestException if it cannot be written, or another process writes it
     */
    public static EventFiles open(Path folder, Alarms alarms) {
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
                + "; set metrics.tensorboard.directory for only one process of a run");
    }

    private static boolean isTaken(FileChannel lock) throws IOException {
        try {
            return lock.tryLock() == null;
        } catch (OverlappingFileLockException e) {
            return true; // by this very process
        }
    }

    private static long lastStep(Path folder) throws IOException {
        long[] last = {EventRecord.NO_STEP};
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

    /**
     * Writes what is known of a step, unless it is there.
     *
     * @param step later than every step before; of an evaluation its version
     * @param wallSeconds when it ended, Unix seconds
     */
    public void write(long step, double wallSeconds, List<Reading> readings) {
        if (failed || step <= lastStep) {
            return;
        }
        try {
            if (file == null) {
                file = begun(wallSeconds);
            }
            append(file, EventRecord.ofStep(wallSeconds, step, curves(readings)));
            lastStep = step;
        } catch (IOException e) {
            failed = true;
            unwritten(
                    alarms,
                    folder,
                    "step " + step + " and those after it are not in TensorBoard's files in " + folder + ": " + e,
                    "free space or repair the folder; the next start of this process writes the missing steps");
        }
    }

    /** Reports missing curves and the command that writes them. */
    public static void unwritten(Alarms alarms, Path folder, String sentence, String remedy) {
        alarms.raise(ALARM, folder.toString(), sentence, remedy);
    }

    /** A 32-bit float cannot hold a time to the second, and the wall time is already there. */
    private static List<Reading> curves(List<Reading> readings) {
        return readings.stream()
                .filter(reading -> !reading.curve().endsWith("_at_ms"))
                .toList();
    }

    /** A new file whose name sorts after all others: TensorBoard reads them in that order. */
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

    /**
     * TensorFlow's framing of records: length as 8 bytes, its checksum as 4, the record, its checksum as 4, all little-endian. A checksum
     * is a CRC-32C, rotated and moved so that a checksum of bytes with checksums in them means something.
     */
    static final class EventFraming {
        private static final int HEAD = Long.BYTES + Integer.BYTES;
        private static final int MASK_DELTA = 0xa282ead8;
        private static final int MOST_BYTES = 16 << 20;

        private EventFraming() {}

        static byte[] framed(byte[] record) {
            ByteBuffer framed =
                    ByteBuffer.allocate(HEAD + record.length + Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            framed.putLong(record.length);
            framed.putInt(masked(framed.array(), 0, Long.BYTES));
            framed.put(record);
            framed.putInt(masked(record, 0, record.length));
            return framed.array();
        }

        /** Reads every whole record of a file in order; ignores a partial one at the end. */
        static void read(Path file, Consumer<byte[]> told) throws IOException {
            try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
                byte[] head = new byte[HEAD];
                while (isWhole(in, head)) {
                    ByteBuffer read = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
                    long length = read.getLong();
                    if (read.getInt() != masked(head, 0, Long.BYTES) || length < 0 || length > MOST_BYTES) {
                        return;
                    }
                    byte[] record = new byte[(int) length];
                    byte[] checksum = new byte[Integer.BYTES];
                    if (!isWhole(in, record)
                            || !isWhole(in, checksum)
                            || ByteBuffer.wrap(checksum)
                                            .order(ByteOrder.LITTLE_ENDIAN)
                                            .getInt()
                                    != masked(record, 0, record.length)) {
                        return;
                    }
                    told.accept(record);
                }
            }
        }

        private static boolean isWhole(InputStream in, byte[] bytes) throws IOException {
            return in.readNBytes(bytes, 0, bytes.length) == bytes.length;
        }

        private static int masked(byte[] bytes, int from, int length) {
            CRC32C crc = new CRC32C();
            crc.update(bytes, from, length);
            return Integer.rotateRight((int) crc.getValue(), 15) + MASK_DELTA;
        }
    }

    /**
     * TensorBoard's message {@code Event}, as far as we write it: wall time (1), step (2), version of the file (3), and a summary (5) of
     * values (1), each with a tag (1) and a number (2). The fields in brackets are those of TensorFlow's {@code event.proto} and
     * {@code summary.proto}.
     */
    static final class EventRecord {
        private static final String VERSION = "brain.Event:2";

        private static final int WALL_TIME = 1;
        private static final int STEP = 2;
        private static final int FILE_VERSION = 3;
        private static final int SUMMARY = 5;
        private static final int VALUE = 1;
        private static final int TAG = 1;
        private static final int SIMPLE_VALUE = 2;

        /** That of a record without a step, such as the one that a file begins with. */
        static final long NO_STEP = -1;

        private EventRecord() {}

        /** What every file begins with. */
        static byte[] ofVersion(double wallSeconds) {
            return message(out -> {
                out.writeDouble(WALL_TIME, wallSeconds);
                out.writeString(FILE_VERSION, VERSION);
            });
        }

        /** All numbers of a step in one record, so that a step is written completely or not at all. */
        static byte[] ofStep(double wallSeconds, long step, List<Reading> readings) {
            byte[] summary = message(out -> {
                for (Reading reading : readings) {
                    out.writeByteArray(VALUE, message(value -> {
                        value.writeString(TAG, reading.curve());
                        value.writeFloat(SIMPLE_VALUE, (float) reading.value());
                    }));
                }
            });
            return message(out -> {
                out.writeDouble(WALL_TIME, wallSeconds);
                out.writeInt64(STEP, step);
                out.writeByteArray(SUMMARY, summary);
            });
        }

        /** The step of a record; {@link #NO_STEP} of one without. */
        static long step(byte[] record) {
            try {
                CodedInputStream in = CodedInputStream.newInstance(record);
                for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
                    if (WireFormat.getTagFieldNumber(tag) == STEP) {
                        return in.readInt64();
                    }
                    in.skipField(tag);
                }
                return NO_STEP;
            } catch (IOException e) {
                throw new UncheckedIOException("a record with a valid checksum is not an event", e);
            }
        }

        private interface Fields {
            void write(CodedOutputStream out) throws IOException;
        }

        private static byte[] message(Fields fields) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try {
                CodedOutputStream out = CodedOutputStream.newInstance(bytes);
                fields.write(out);
                out.flush();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return bytes.toByteArray();
        }
    }
}
