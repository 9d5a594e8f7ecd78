package dev.millrace.learner;

import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import java.util.Locale;

/**
 * A generator, scorer or evaluator as it said last of itself.
 *
 * @param id            its id, unique among those of its role
 * @param oldestVersion oldest that sampled a token of what it has in flight, or {@code version} if it names none
 * @param heardMs       when it said so, Unix milliseconds of its clock
 */
record Server(String id, ServerRole role, long version, long oldestVersion, long heardMs) {

    static Server of(Serving record) {
        long version = record.getVersion();
        Long oldest = record.getOldestVersion();
        return new Server(
                record.getServerId(),
                record.getRole(),
                version,
                oldest == null ? version : Math.min(oldest, version),
                record.getHeartbeatMs());
    }

    /** For sentences: {@code generator g1}. */
    String name() {
        return role.name().toLowerCase(Locale.ROOT) + " " + id;
    }
}
