package dev.millrace.log.transaction;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.UUID;

/**
 * One attempt of a role, from its start to its end, over all producers that it opens. It takes its transactional id over
 * once; after that it may only keep it. Confined to the role's thread.
 */
public final class Incarnation {
    private final String who = UUID.randomUUID() + " (process "
            + ProcessHandle.current().pid() + ", since " + Instant.now().truncatedTo(ChronoUnit.SECONDS) + ")";
    private long term;

    /** What is recorded of an owner: its term, and who it is. */
    String text(long ofTerm) {
        return ofTerm + " " + who;
    }

    /** Unlike that of any other, and readable. */
    String who() {
        return who;
    }

    /** Greater than those of all owners before it; 0 if it has never owned the id. */
    long term() {
        return term;
    }

    void owns(long newTerm) {
        term = newTerm;
    }
}
