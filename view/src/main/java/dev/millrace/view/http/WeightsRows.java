package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.view.index.RunIndex;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Versions: how large, when published, and how long after that each server served them. */
public final class WeightsRows {
    private static final int MOST = 500;

    private WeightsRows() {}

    /** The newest versions of an epoch, oldest first, and who began to serve them when. */
    public static ObjectNode of(RunIndex index, int epoch) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        List<ObjectNode> versions = new ArrayList<>();
        index.read(
                "SELECT version, parent, batch, published_ms, bytes, base, anchor, sha256, optimizer, partition, offset FROM version"
                        + " WHERE epoch = ? ORDER BY version DESC LIMIT " + MOST,
                List.of(epoch),
                row -> {
                    ObjectNode version = JsonNodeFactory.instance
                            .objectNode()
                            .put("version", row.getLong(1))
                            .put("parent", row.getLong(2))
                            .put("batch", row.getLong(3))
                            .put("published_ms", row.getLong(4))
                            .put("bytes", row.getLong(5))
                            .put("base", row.getObject(6) == null ? null : row.getLong(6))
                            .put("sha256", row.getString(8))
                            .put("optimizer_bytes", row.getObject(9) == null ? null : row.getLong(9))
                            .put("place", "policy-versions-" + row.getLong(10) + "@" + row.getLong(11));
                    versions.add(version);
                });
        Collections.reverse(versions);
        json.putArray("versions").addAll(versions);
        long from = versions.isEmpty() ? 0 : versions.get(0).path("version").asLong();
        ArrayNode served = json.putArray("served");
        index.read(
                "SELECT server, role, version, since_ms FROM served WHERE epoch = ? AND version >= ? ORDER BY version",
                List.of(epoch, from),
                row -> served.addObject()
                        .put("server", row.getString(1))
                        .put("role", row.getString(2))
                        .put("version", row.getLong(3))
                        .put("since_ms", row.getLong(4)));
        return json;
    }
}
