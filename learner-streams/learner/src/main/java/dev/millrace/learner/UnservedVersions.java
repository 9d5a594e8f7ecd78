package dev.millrace.learner;

import dev.millrace.schemas.ServerRole;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.LongUnaryOperator;

/**
 * Decides who does not serve what was published long ago.
 *
 * <p>A server at version s is late by the age of version s+1, however many came after it; a role without any server since
 * the last one left. Ages count from the publication, or from when somebody began to watch, if that was later: after a
 * night's rest nobody is late. Used by one thread.
 */
final class UnservedVersions {
    private final long limitMs;
    private final long watchedSinceMs;
    /** When somebody in the role was last seen. */
    private final Map<ServerRole, Long> seenMs = new EnumMap<>(ServerRole.class);

    /**
     * One alarm.
     *
     * @param who     which server, or which role without a server
     * @param version first version that is not served there
     * @param ageMs   for how long it could have been
     * @param detail  a sentence
     */
    record Unserved(String who, long version, long ageMs, String detail) {}

    UnservedVersions(long limitMs, long watchedSinceMs) {
        this.limitMs = limitMs;
        this.watchedSinceMs = watchedSinceMs;
    }

    /**
     * @param publishedAtMs when a version up to {@code newest} was published; 0 for one that is not remembered
     * @return in the order of the servers, then roles; empty if all is well
     */
    List<Unserved> find(long newest, Collection<Server> servers, LongUnaryOperator publishedAtMs, long nowMs) {
        List<Unserved> found = new ArrayList<>();
        for (Server server : servers) {
            long missing = server.version() + 1;
            long age = missing > newest ? -1 : age(publishedAtMs.applyAsLong(missing), nowMs);
            if (age > limitMs) {
                found.add(new Unserved(
                        server.name(),
                        missing,
                        age,
                        server.name() + " serves version " + server.version()
                                + ", but version " + missing + " could be served for " + age / 1000
                                + " s; the newest is " + newest
                                + ", and it was last heard of " + Math.max(0, nowMs - server.heardMs()) / 1000
                                + " s ago"));
            }
        }
        for (ServerRole role : List.of(ServerRole.GENERATOR, ServerRole.SCORER)) {
            if (servers.stream().anyMatch(server -> server.role() == role)) {
                seenMs.put(role, nowMs);
                continue;
            }
            long age = age(Math.max(publishedAtMs.applyAsLong(0), seenMs.getOrDefault(role, 0L)), nowMs);
            if (age > limitMs) {
                String name = role.name().toLowerCase(Locale.ROOT);
                found.add(new Unserved(
                        "no " + name,
                        0,
                        age,
                        "no " + name + " serves any version; the newest is " + newest + ", and there has been none for "
                                + age / 1000 + " s"));
            }
        }
        return found;
    }

    private long age(long sinceMs, long nowMs) {
        return nowMs - Math.max(sinceMs, watchedSinceMs);
    }
}
