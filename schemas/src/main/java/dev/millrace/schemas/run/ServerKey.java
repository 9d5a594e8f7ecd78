package dev.millrace.schemas.run;

import dev.millrace.schemas.Serving;
import java.nio.charset.StandardCharsets;

/**
 * The key of a server's heartbeat: {@code server_id/epoch}.
 *
 * <p>The epoch is part of the key because a server may still write after a newer epoch began: otherwise compaction
 * could replace the newer epoch's records.
 */
public final class ServerKey {
    private ServerKey() {}

    public static byte[] of(Serving serving) {
        return (serving.getServerId() + "/" + serving.getEpoch()).getBytes(StandardCharsets.UTF_8);
    }
}
