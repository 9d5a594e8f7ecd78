package dev.millrace.weights;

import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads each newest version right after its publication, so that sampling and scoring never wait for a load.
 *
 * <p>Loads on its own thread; skips versions that are outdated before their turn. {@link #current()} may be
 * called between any two tokens: it reads a volatile field. {@link BrokenVersionPolicy} decides about a version that is
 * missing on the log or does not match its manifest: it is skipped with a warning, or {@link #current()} throws.
 * {@link #current()} also throws once the feed has stopped.
 */
public final class NewestWeights implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NewestWeights.class);
    private static final Duration WAIT = Duration.ofSeconds(1);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(10);

    /** A version and its weights, shared and read-only. */
    public record Loaded(PolicyVersion manifest, Weights weights) {
        public long version() {
            return manifest.getVersion();
        }
    }

    private final PolicyFeed feed;
    private final Consumer<Weights> prepare;
    private final Runnable sync;
    private final Object turn = new Object();
    private final Thread thread;
    private volatile boolean readsOneAhead;
    private volatile long readOnAfter = -1;
    private volatile Loaded current;
    private volatile @Nullable Throwable failure;
    private volatile boolean closed;

    /**
     * Waits for the first version and loads it; from then on {@link #current()} returns a version.
     *
     * @param feed stays the caller's and must be closed after this
     * @throws VersionUnavailableException if no loadable version was published within the limit
     * @throws CorruptVersionException if the newest version is corrupt, and the configuration says to stop
     */
    public NewestWeights(PolicyFeed feed, Duration firstLimit) {
        this(feed, firstLimit, weights -> {}, () -> {});
    }

    /**
     * @param feed as above
     * @param firstLimit as above
     * @param prepare called with a version's weights before they are current, on the thread that loaded them
     * @param sync called while a version is loaded, on another thread; the version is current only when it has returned
     */
    public NewestWeights(PolicyFeed feed, Duration firstLimit, Consumer<Weights> prepare, Runnable sync) {
        this.feed = feed;
        this.prepare = prepare;
        this.sync = sync;
        this.current = first(firstLimit);
        this.thread = new Thread(this::follow, "newest-weights");
        thread.setDaemon(true);
        thread.start();
    }

    /** Returns the newest loaded version. Never waits. */
    public Loaded current() {
        if (failure != null) {
            throw new IllegalStateException("new versions are no longer loaded: " + failure.getMessage(), failure);
        }
        return current;
    }

    /**
     * Loads the next version only after {@link #readOn} was called with the current one, for callers without memory for
     * a third version.
     */
    public void readOneAhead() {
        readsOneAhead = true;
    }

    /** Signals that the caller holds only this version, so that a newer one may be loaded. Never waits. */
    public void readOn(long version) {
        if (readsOneAhead && readOnAfter != version) {
            synchronized (turn) {
                readOnAfter = version;
                turn.notifyAll();
            }
        }
    }

    /** Waits until only the current version is held. */
    private void awaitTurn() {
        try {
            synchronized (turn) {
                while (readsOneAhead && !closed && readOnAfter != current.version()) {
                    turn.wait(WAIT.toMillis());
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // only closing interrupts
        }
    }

    private Loaded first(Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        long wanted = 0;
        String broken = "";
        while (true) {
            Duration left = Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
            PolicyVersion newest;
            try {
                newest = feed.awaitAtLeast(wanted, left);
            } catch (VersionUnavailableException e) {
                throw broken.isEmpty()
                        ? e
                        : new VersionUnavailableException(
                                broken + ", and no later version was published within " + limit.toMillis() + " ms; \""
                                        + feed.wayOut() + "\" fixes it",
                                e);
            }
            try {
                return load(newest);
            } catch (VersionUnavailableException | CorruptVersionException e) {
                if (feed.onBroken() == BrokenVersionPolicy.STOP) {
                    throw e;
                }
                wanted = newest.getVersion() + 1;
                broken = String.valueOf(e.getMessage());
                LOG.warn("waits for version {} or later, up to {} ms: {}", wanted, left.toMillis(), e.getMessage());
            }
        }
    }

    private void follow() {
        PolicyVersion seen = current.manifest();
        while (!closed) {
            awaitTurn();
            try {
                Optional<PolicyVersion> other = feed.awaitOther(seen, WAIT);
                if (other.isPresent()) {
                    if (other.get().getVersion() <= seen.getVersion()) {
                        LOG.warn(
                                "the log lost version {}; continues with version {}",
                                seen.getVersion(),
                                other.get().getVersion());
                    }
                    seen = other.get();
                    current = load(seen);
                }
            } catch (VersionUnavailableException | CorruptVersionException e) {
                if (feed.onBroken() == BrokenVersionPolicy.STOP) {
                    failure = e;
                    return;
                }
                LOG.warn(
                        "continues with version {} until a version can be loaded again: {}; \"{}\" fixes it",
                        current.version(),
                        e.getMessage(),
                        feed.wayOut());
            } catch (RuntimeException | Error e) { // errors too: silently stale weights are worse than a stop
                if (!closed) {
                    failure = e;
                }
                return;
            }
        }
    }

    private Loaded load(PolicyVersion manifest) {
        Loaded before = current;
        CompletableFuture<Void> synced = CompletableFuture.runAsync(sync);
        Weights weights = feed.shared(
                manifest.getVersion(), version -> before != null && isSame(before, version) ? before.weights() : null);
        prepare.accept(weights);
        try {
            synced.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : e;
        }
        return new Loaded(manifest, weights);
    }

    /** Compares weights, not only numbers: a truncated log may have another version with the same number. */
    private boolean isSame(Loaded before, long version) {
        return before.version() == version
                && feed.manifest(version)
                        .getWeights()
                        .getSha256()
                        .equals(before.manifest().getWeights().getSha256());
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        try {
            thread.join(CLOSE_LIMIT.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (thread.isAlive()) {
            LOG.warn("the thread that loads new versions did not end within {} ms", CLOSE_LIMIT.toMillis());
        }
    }
}
