package dev.millrace.cli.train;

import dev.millrace.cli.Refusal;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/**
 * The folder that holds everything of one run: its configuration, its broker's log, its results.
 *
 * <p>One process at a time: the folder is locked while it is open.
 */
public final class RunDirectory implements AutoCloseable {
    private static final long LEAST_FREE_BYTES = 200L << 20;

    private final Path path;
    private final boolean resumed;
    private final FileChannel lockFile;
    private final FileLock lock;

    private RunDirectory(Path path, boolean resumed, FileChannel lockFile, FileLock lock) {
        this.path = path;
        this.resumed = resumed;
        this.lockFile = lockFile;
        this.lock = lock;
    }

    /** True if a run was begun at this path. */
    public static boolean holdsRun(Path path) {
        return Files.isRegularFile(path.resolve("config.yaml"));
    }

    /**
     * Opens the folder, making it if it is not there.
     *
     * @throws Refusal if it cannot be made, written or locked, holds something else than a run, or has no room
     */
    public static RunDirectory open(Path path) {
        boolean resumed = holdsRun(path);
        try {
            if (Files.exists(path) && !resumed && !isEmptyFolder(path)) {
                throw new Refusal(path + " is not empty and holds no run (it has no config.yaml); "
                    + "give --run-dir a new or empty folder, or one of an earlier run");
            }
            Files.createDirectories(path);
            FileStore store = Files.getFileStore(path);
            if (store.getUsableSpace() < LEAST_FREE_BYTES) {
                throw new Refusal("there are " + (store.getUsableSpace() >> 20) + " MB free for " + path.toAbsolutePath() + ", and a run needs at least "
                    + (LEAST_FREE_BYTES >> 20) + " MB; make room or give --run-dir a folder on another disk");
            }
            FileChannel channel = FileChannel.open(path.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            FileLock lock = tryLock(channel);
            if (lock == null) {
                channel.close();
                throw new Refusal("another process is running in " + path + "; wait for it, or give --run-dir another folder");
            }
            return new RunDirectory(path, resumed, channel, lock);
        } catch (IOException e) {
            throw new Refusal("cannot use " + path + " as run directory: " + reason(e) + "; give --run-dir a folder that can be written", e);
        }
    }

    private static FileLock tryLock(FileChannel channel) throws IOException {
        try {
            return channel.tryLock();
        } catch (OverlappingFileLockException heldByThisProcess) {
            return null;
        }
    }

    private static boolean isEmptyFolder(Path path) throws IOException {
        if (!Files.isDirectory(path)) {
            return false;
        }
        try (var entries = Files.list(path)) {
            return entries.allMatch(entry -> entry.endsWith("lock"));
        }
    }

    private static String reason(IOException e) {
        return e.getClass().getSimpleName().replace("Exception", "") + " " + e.getMessage();
    }

    /** The folder. */
    public Path path() {
        return path;
    }

    /** True if it held a run when it was opened. */
    public boolean resumed() {
        return resumed;
    }

    public Path config() {
        return path.resolve("config.yaml");
    }

    public Path broker() {
        return path.resolve("broker");
    }

    public Path streamsState() {
        return path.resolve("state");
    }

    public Path summary() {
        return path.resolve("summary.json");
    }

    public Path steps() {
        return path.resolve("steps.csv");
    }

    public Path picture() {
        return path.resolve("run.png");
    }

    public Path log() {
        return path.resolve("millrace.log");
    }

    /** Writes a file so that a reader, or a kill, never sees half of it. */
    public void write(Path file, String text) {
        Path whole = file.resolveSibling(file.getFileName() + ".new");
        try {
            Files.writeString(whole, text);
            Files.move(whole, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new Refusal("cannot write " + file + ": " + reason(e), e);
        }
    }

    @Override
    public void close() {
        try {
            lock.release();
            lockFile.close();
        } catch (IOException e) {
            throw new Refusal("cannot release " + path + ": " + reason(e), e);
        }
    }
}
