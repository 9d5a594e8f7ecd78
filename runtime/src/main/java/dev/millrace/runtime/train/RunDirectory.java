package dev.millrace.runtime.train;

import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileStore;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The folder that holds everything of one run: its configuration, its broker's log, its results.
 *
 * <p>The folder is locked while it is open: one process at a time. A process waits a while for another that only reads
 * it.
 */
public final class RunDirectory implements AutoCloseable {
    private static final String LOG = "millrace.log";
    private static final String ADDRESS = "broker.address";
    /** Files that may exist before or without a run. */
    private static final Set<String> NO_RUN = Set.of(FolderLock.LOCK, FolderLock.LENT, FolderLock.ASKED, LOG, ADDRESS);

    private static final long LEAST_FREE_BYTES = 200L << 20;

    private final Path path;
    private final boolean resumed;
    private final FolderLock lock;

    private RunDirectory(Path path, boolean resumed, FolderLock lock) {
        this.path = path;
        this.resumed = resumed;
        this.lock = lock;
    }

    public static boolean holdsRun(Path path) {
        return Files.isRegularFile(config(path));
    }

    /** The configuration file; it marks a run's folder. */
    public static Path config(Path path) {
        return path.resolve("config.yaml");
    }

    /** True if a process holds the folder: a live run, or a reader as in {@link #isLent}. */
    public static boolean isInUse(Path path) {
        return look(path, FolderLock::isTaken);
    }

    /** True if the process that holds the folder only reads it. */
    public static boolean isLent(Path path) {
        return look(path, FolderLock::isLent);
    }

    /** True if a live run holds the folder. */
    public static boolean isRunning(Path path) {
        return isInUse(path) && !isLent(path);
    }

    /**
     * Asks the process that trains in the folder to stop in order. Signals it once, since a second signal ends it at
     * once.
     *
     * @return the process; empty if none trains there
     * @throws RefusedRequestException if it cannot be signalled from here
     */
    public static Optional<ProcessHandle> stop(Path path) {
        if (!isRunning(path)) {
            return Optional.empty();
        }
        try {
            return Optional.of(FolderLock.stop(path));
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot ask the process that trains in " + path + " to stop: " + reason(e)
                            + "; end it where it runs, with SIGTERM or Ctrl-C",
                    e);
        }
    }

    private interface Look {
        boolean at(Path path) throws IOException;
    }

    private static boolean look(Path path, Look question) {
        try {
            return question.at(path);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot look at " + path + ": " + reason(e), e);
        }
    }

    /** Broker of the live run in this folder, {@code host:port}; empty if it does not say. */
    public static String brokerAddress(Path path) {
        try {
            return Files.exists(path.resolve(ADDRESS))
                    ? Files.readString(path.resolve(ADDRESS)).strip()
                    : "";
        } catch (IOException e) {
            throw new RefusedRequestException("cannot read " + path.resolve(ADDRESS) + ": " + reason(e), e);
        }
    }

    /** Writes the address of this folder's broker, for commands that read the live run. */
    public void writeBrokerAddress(String bootstrapServers) {
        write(path.resolve(ADDRESS), bootstrapServers + "\n");
    }

    /**
     * Opens the folder and creates it if missing. Waits for a process that only reads it.
     *
     * @throws RefusedRequestException if it cannot be created, written or locked, holds something other than a run, or
     * has no free space
     */
    public static RunDirectory open(Path path) {
        return open(path, false);
    }

    /**
     * As {@link #open}, for a process that reads the run through its own broker; others wait a while for the folder.
     */
    public static RunDirectory lend(Path path) {
        return open(path, true);
    }

    private static RunDirectory open(Path path, boolean toRead) {
        boolean resumed = holdsRun(path);
        try {
            if (Files.exists(path) && !Files.isDirectory(path)) {
                throw new RefusedRequestException(
                        path + " is a file; give --run-dir a new or empty folder, or one of an earlier run");
            }
            if (Files.exists(path) && !resumed && !isEmptyFolder(path)) {
                throw new RefusedRequestException(path + " is not empty and holds no run (it has no config.yaml); "
                        + "give --run-dir a new or empty folder, or one of an earlier run");
            }
            Files.createDirectories(path);
            FileStore store = Files.getFileStore(path);
            if (store.getUsableSpace() < LEAST_FREE_BYTES) {
                throw new RefusedRequestException("there are " + (store.getUsableSpace() >> 20) + " MB free for "
                        + path.toAbsolutePath() + ", and a run needs at least " + (LEAST_FREE_BYTES >> 20)
                        + " MB; make room or give --run-dir a folder on another disk");
            }
            Optional<FolderLock> lock = FolderLock.take(path, toRead);
            return new RunDirectory(
                    path,
                    resumed,
                    lock.orElseThrow(() -> new RefusedRequestException("another process is running in " + path
                            + "; wait for it, or give --run-dir another folder")));
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot use " + path + " as run directory (" + reason(e)
                            + "); give --run-dir a folder that can be written",
                    e);
        }
    }

    private static boolean isEmptyFolder(Path path) throws IOException {
        try (Stream<Path> entries = Files.list(path)) {
            return entries.allMatch(entry -> NO_RUN.contains(entry.getFileName().toString()));
        }
    }

    /** The operating system's message without the leading path. */
    public static String reason(IOException e) {
        if (e instanceof AccessDeniedException) {
            return "permission denied";
        }
        if (e instanceof NoSuchFileException) {
            return "it cannot be created there";
        }
        if (e instanceof FileSystemException known && known.getReason() != null) {
            return known.getReason();
        }
        return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    }

    public Path path() {
        return path;
    }

    /** True if it contained a run when it was opened. */
    public boolean resumed() {
        return resumed;
    }

    public Path config() {
        return config(path);
    }

    public Path broker() {
        return path.resolve("broker");
    }

    public Path streamsState() {
        return path.resolve("state");
    }

    public Path tokenizer() {
        return path.resolve("tokenizer");
    }

    public Path summary() {
        return path.resolve("summary.json");
    }

    public Path steps() {
        return path.resolve("steps.csv");
    }

    /** Models written at the run's end. */
    public Path models() {
        return path.resolve("models");
    }

    /** Evaluations on held-out prompts, one row each. */
    public Path evaluations() {
        return path.resolve("evaluations.csv");
    }

    /** TensorBoard's event files. */
    public Path curves() {
        return path.resolve("curves");
    }

    public Path picture() {
        return path.resolve("run.png");
    }

    public Path log() {
        return log(path);
    }

    /** Log file for warnings and errors. */
    public static Path log(Path path) {
        return path.resolve(LOG);
    }

    /** Writes a file atomically. */
    public void write(Path file, String text) {
        Path whole = file.resolveSibling(file.getFileName() + ".new");
        try {
            Files.writeString(whole, text);
            Files.move(whole, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write " + file + ": " + reason(e), e);
        }
    }

    /**
     * Undoes a failed start, such as one with a port in use: the next attempt must not continue with its configuration.
     * Only the log file stays.
     */
    void discard() {
        try {
            Files.deleteIfExists(config());
            WholeFile.delete(broker());
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot empty " + path + " after a failed start: " + reason(e)
                            + "; delete it before the next start",
                    e);
        }
    }

    @Override
    public void close() {
        try {
            lock.close();
        } catch (IOException e) {
            throw new RefusedRequestException("cannot release " + path + ": " + reason(e), e);
        }
    }

    /**
     * Lock of a run's folder: held by one process, which trains in it or reads it with its own broker. Others wait for
     * a reader. Uses locks of the operating system, which a kill releases.
     */
    static final class FolderLock implements AutoCloseable {
        /** Held by the process that owns the folder. */
        static final String LOCK = "lock";
        /** Held in addition by a process that only reads. */
        static final String LENT = "lock.lent";

        /** Process that was asked to stop, as named in the lock. */
        static final String ASKED = "lock.stop";

        /** Tolerance when two processes compare the start time of a third: the clock may have been set between. */
        private static final Duration START_TOLERANCE = Duration.ofSeconds(10);

        /** A process that checks whether a folder is in use holds its lock for a moment. */
        private static final Duration GLANCE = Duration.ofMillis(500);

        private static final Duration READING = Duration.ofSeconds(60);
        private static final long LOOK_MS = 50;

        /**
         * Files that this process has locked: opening and closing one again would release its lock. Also used as the
         * monitor.
         */
        private static final Set<Path> OURS = new HashSet<>();

        private final Held folder;
        private final @Nullable Held lent;

        private FolderLock(Held folder, @Nullable Held lent) {
            this.folder = folder;
            this.lent = lent;
        }

        private record Held(Path file, FileChannel channel, FileLock lock) implements AutoCloseable {
            static Optional<Held> take(Path file) throws IOException {
                Path path = file.toAbsolutePath().normalize();
                synchronized (OURS) {
                    if (OURS.contains(path)) {
                        return Optional.empty();
                    }
                    FileChannel channel = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    FileLock lock = null;
                    try {
                        lock = channel.tryLock();
                    } finally {
                        if (lock == null) {
                            channel.close();
                        }
                    }
                    if (lock == null) {
                        return Optional.empty();
                    }
                    OURS.add(path);
                    return Optional.of(new Held(path, channel, lock));
                }
            }

            void name(ProcessHandle process) throws IOException {
                channel.truncate(0);
                channel.write(
                        ByteBuffer.wrap((process.pid() + " " + startMs(process)).getBytes(StandardCharsets.UTF_8)));
            }

            /** As {@link #take}, but retries while another process checks it. */
            static Optional<Held> takeSoon(Path file) throws IOException {
                return again(file, GLANCE, () -> true);
            }

            static Optional<Held> again(Path file, Duration limit, Going going) throws IOException {
                long deadline = System.nanoTime() + limit.toNanos();
                Optional<Held> held = take(file);
                while (held.isEmpty() && System.nanoTime() < deadline && going.is()) {
                    try {
                        TimeUnit.MILLISECONDS.sleep(LOOK_MS);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                        return Optional.empty();
                    }
                    held = take(file);
                }
                return held;
            }

            static boolean isHeld(Path file) throws IOException {
                Path path = file.toAbsolutePath().normalize();
                synchronized (OURS) {
                    if (OURS.contains(path)) {
                        return true;
                    }
                    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ);
                            FileLock lock = channel.tryLock(
                                    0, Long.MAX_VALUE, true)) { // shared: checking processes do not block each other
                        return lock == null;
                    } catch (NoSuchFileException e) {
                        return false;
                    }
                }
            }

            @Override
            public void close() throws IOException {
                synchronized (OURS) {
                    try (channel) {
                        lock.release();
                    } finally {
                        OURS.remove(file);
                    }
                }
            }
        }

        /** Returns whether waiting can succeed. */
        private interface Going {
            boolean is() throws IOException;
        }

        /**
         * Takes the folder; waits a while for a reader to end.
         *
         * @param toRead whether others may wait for this one
         * @return empty if another process has it
         */
        static Optional<FolderLock> take(Path folder, boolean toRead) throws IOException {
            Path lock = folder.resolve(LOCK);
            Optional<Held> held = Held.again(lock, GLANCE, () -> !isLent(folder));
            if (held.isEmpty() && isLent(folder)) {
                held = Held.again(lock, READING, () -> true);
            }
            if (held.isEmpty()) {
                return Optional.empty();
            }
            try {
                held.get().name(ProcessHandle.current());
                return Optional.of(new FolderLock(
                        held.get(), toRead ? Held.takeSoon(folder.resolve(LENT)).orElse(null) : null));
            } catch (IOException e) {
                held.get().close();
                throw e;
            }
        }

        /** Start of a process, 0 where the operating system does not say. */
        private static long startMs(ProcessHandle process) {
            return process.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
        }

        /** Sends the holder of the folder a signal, unless it was sent one before. */
        static ProcessHandle stop(Path folder) throws IOException {
            String holder = Files.readString(folder.resolve(LOCK));
            ProcessHandle process = holder(holder)
                    .filter(ProcessHandle::supportsNormalTermination)
                    .orElseThrow(() -> new IOException("this process may not signal it"));
            Path asked = folder.resolve(ASKED);
            if (!Files.exists(asked) || !Files.readString(asked).equals(holder)) {
                Files.writeString(asked, holder);
                if (!process.destroy()) {
                    Files.delete(asked);
                    throw new IOException("the operating system refuses it");
                }
            }
            return process;
        }

        /**
         * Process that a lock names, if it still is that one: another machine or container may reuse the process id.
         */
        private static Optional<ProcessHandle> holder(String named) {
            String[] words = named.split(" ");
            return words.length == 2 && words[0].matches("[0-9]+") && words[1].matches("[0-9]+")
                    ? ProcessHandle.of(Long.parseLong(words[0]))
                            .filter(process ->
                                    Math.abs(startMs(process) - Long.parseLong(words[1])) <= START_TOLERANCE.toMillis())
                    : Optional.empty();
        }

        static boolean isTaken(Path folder) throws IOException {
            return Held.isHeld(folder.resolve(LOCK));
        }

        /** Returns whether the holder of the folder only reads it. */
        static boolean isLent(Path folder) throws IOException {
            return Held.isHeld(folder.resolve(LENT));
        }

        @Override
        public void close() throws IOException {
            try (folder) {
                if (lent != null) {
                    lent.close();
                }
            }
        }
    }
}
