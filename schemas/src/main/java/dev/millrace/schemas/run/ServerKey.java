package dev.millrace.schemas.run;

import dev.millrace.schemas.Serving;
import java.nio.charset.StandardCharsets;

/**
 * The key of a server's heartbeat: {@code server_id/epoch}.
 *
 * <p>The epoch is part of it because a server that has not noticed a later epoch continues writing: under compaction its
 * records would otherwise take the place of those that the later epoch reads.
 */
public final class ServerKey {
    private ServerKey() {}

    /** The key under which a heartbeat belongs, as it goes to the log. */
    public static byte[] of(Serving serving) {
        return (serving.getServerId() + "/" + serving.getEpoch()).getBytes(StandardCharsets.UTF_8);
    }
}
