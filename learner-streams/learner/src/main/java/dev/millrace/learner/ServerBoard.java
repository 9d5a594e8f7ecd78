package dev.millrace.learner;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What servers said last of themselves, and for how long each has been silent.
 *
 * <p>A server that has ended in order is off the board at once; one that was killed, {@value #FORGOTTEN_AFTER_MS} ms after
 * its last word, with a warning: until then it may be one that hangs. How old a word is when it is read follows from its date; one
 * that is dated in the future, by a clock that was wrong, counts as said when it was read. From then on its age grows by a clock that
 * nobody sets. Used by one thread.
 */
final class ServerBoard {
    private static final Logger LOG = LoggerFactory.getLogger(ServerBoard.class);
    static final long FORGOTTEN_AFTER_MS = 300_000;

    private final LongSupplier nanos;
    private final Map<String, Heard> heard = new LinkedHashMap<>();

    /** @param saidNanos when, on the monotonic clock */
    private record Heard(Server server, long saidNanos) {}

    /** @param nanos a clock that only runs forward, such as {@link System#nanoTime} */
    ServerBoard(LongSupplier nanos) {
        this.nanos = nanos;
    }

    /** @param nowMs the current time on the clock that dates the servers' messages */
    void hear(Server server, long nowMs) {
        long ageMs = Math.max(0, nowMs - server.heardMs());
        heard.put(server.name(), new Heard(server, nanos.getAsLong() - TimeUnit.MILLISECONDS.toNanos(ageMs)));
    }

    void left(Server server) {
        heard.remove(server.name());
    }

    /** Every server that is not forgotten. */
    Collection<Server> servers() {
        long now = nanos.getAsLong();
        heard.values().removeIf(last -> {
            long silentMs = TimeUnit.NANOSECONDS.toMillis(now - last.saidNanos());
            boolean forgotten = silentMs > FORGOTTEN_AFTER_MS;
            if (forgotten) {
                LOG.warn(
                        "{} was last heard of {} s ago, serving version {}; it is no longer waited for, nor are versions kept"
                                + " for it",
                        last.server().name(),
                        silentMs / 1000,
                        last.server().version());
            }
            return forgotten;
        });
        return heard.values().stream().map(Heard::server).toList();
    }
}
