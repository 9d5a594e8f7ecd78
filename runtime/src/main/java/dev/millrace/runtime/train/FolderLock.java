package dev.millrace.runtime.train;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Who has a run's folder: one process at a time, that trains in it, or that reads it with the broker of its own. Who wants a folder that is only read
 * says so, and waits until the reader has stepped aside. All of it are locks of the operating system, which a kill gives back.
 */
final class FolderLock implements AutoCloseable {
    /** Held by whoever has the folder. */
    static final String LOCK = "lock";
    /** Held beside it by one who only reads. */
    static final String LENT = "lock.lent";
    /** Held by one who waits for a reader. */
    static final String WANTED = "lock.wanted";

    /** Who looks whether a folder is in use holds its lock for a moment. */
    private static final Duration GLANCE = Duration.ofMillis(500);

    private static final Duration STEP_ASIDE = Duration.ofSeconds(60);
    private static final long LOOK_MS = 50;

    /** Files that this process has locked: to open and close one of them once more would give its lock up. Also the monitor of all of it. */
    private static final Set<Path> OURS = new HashSet<>();

    private final Held folder;
    private final @Nullable Held lent;

    private FolderLock(Held folder, @Nullable Held lent) {
        this.folder = folder;
        this.lent = lent;
    }

    /** A file that is locked. */
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

        /** As {@link #take}, also where another looks at it just now. */
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
                        FileLock lock =
                                channel.tryLock(0, Long.MAX_VALUE, true)) { // shared: lookers do not see each other
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

    /** Whether waiting is of use. */
    private interface Going {
        boolean is() throws IOException;
    }

    /**
     * Takes the folder. Where another only reads it, waits until that one has stepped aside, as long as that takes a process that looks.
     *
     * @param toRead whether this one will step aside for others
     * @return empty if another process has it
     */
    static Optional<FolderLock> take(Path folder, boolean toRead) throws IOException {
        Path lock = folder.resolve(LOCK);
        Optional<Held> held = Held.again(lock, GLANCE, () -> !isLent(folder));
        if (held.isEmpty() && isLent(folder)) {
            Optional<Held> wanted =
                    Held.takeSoon(folder.resolve(WANTED)); // where another waits too, its word is enough
            try {
                held = Held.again(lock, STEP_ASIDE, () -> true);
            } finally {
                if (wanted.isPresent()) {
                    wanted.get().close();
                }
            }
        }
        if (held.isEmpty()) {
            return Optional.empty();
        }
        try {
            return Optional.of(new FolderLock(
                    held.get(), toRead ? Held.takeSoon(folder.resolve(LENT)).orElse(null) : null));
        } catch (IOException e) {
            held.get().close();
            throw e;
        }
    }

    /** Whether a process has the folder, this one or another. */
    static boolean isTaken(Path folder) throws IOException {
        return Held.isHeld(folder.resolve(LOCK));
    }

    /** Whether who has the folder only reads. */
    static boolean isLent(Path folder) throws IOException {
        return Held.isHeld(folder.resolve(LENT));
    }

    /** Whether somebody waits for a reader to step aside. */
    static boolean isWanted(Path folder) throws IOException {
        return Held.isHeld(folder.resolve(WANTED));
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
