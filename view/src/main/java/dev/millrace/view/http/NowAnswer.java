package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.LogConnection;
import dev.millrace.runtime.train.ConsumerLag;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.index.RunIndex;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.errors.GroupAuthorizationException;

/** Who serves what, who is behind, what rings: everything of a run's present that is not in its steps. */
public final class NowAnswer {
    private NowAnswer() {}

    /** At this moment. */
    public static ObjectNode of(ViewedRun run, RunIndex index, int epoch, long nowMs) {
        ObjectNode json = RunFacts.of(run).put("now_ms", nowMs);
        index.read(
                // what a gap precedes is not of the chain
                "SELECT version, published_ms FROM version AS v WHERE epoch = ? AND NOT EXISTS"
                        + " (SELECT 1 FROM version WHERE epoch = v.epoch AND version = v.version + 1)"
                        + " ORDER BY version LIMIT 1",
                List.of(epoch),
                row -> json.put("newest_version", row.getLong(1)).put("published_ms", row.getLong(2)));
        servers(json.putArray("servers"), index);
        ArrayNode alarms = json.putArray("alarms");
        run.source()
                .alarms()
                .forEach(alarm -> alarms.addObject()
                        .put("name", alarm.name())
                        .put("subject", alarm.subject())
                        .put("sentence", alarm.sentence())
                        .put("remedy", alarm.remedy()));
        json.put(
                "dead_letters",
                index.numbers("SELECT count(*) FROM letter WHERE redriven < 0").get(0));
        run.status().ifPresent(status -> status(json.putObject("status"), status));
        return json;
    }

    private static void servers(ArrayNode servers, RunIndex index) {
        index.read(
                "SELECT server, role, version, since_ms, heartbeat_ms, tokens, left, tokens_before, heartbeat_before_ms"
                        + " FROM server ORDER BY role, server",
                List.of(),
                row -> {
                    ObjectNode server = servers.addObject()
                            .put("server", row.getString(1))
                            .put("role", row.getString(2))
                            .put("version", row.getLong(3))
                            .put("since_ms", row.getLong(4))
                            .put("heartbeat_ms", row.getLong(5))
                            .put("tokens", row.getLong(6))
                            .put("left", row.getInt(7) == 1);
                    long before = row.getLong(9);
                    long tokensBefore = row.getLong(8);
                    if (before > 0 && row.getLong(5) > before && row.getLong(6) >= tokensBefore) {
                        server.put(
                                "tokens_per_second",
                                1000.0 * (row.getLong(6) - tokensBefore) / (row.getLong(5) - before));
                    } else {
                        server.putNull("tokens_per_second");
                    }
                });
    }

    private static void status(ObjectNode json, RunStatus status) {
        json.put("phase", status.phase()).put("elapsed_seconds", status.elapsedSeconds());
        status.tokensPerSecond().forEach(json.putObject("tokens_per_second")::put);
        status.idle().forEach(json.putObject("idle")::put);
        status.recordsBehind().forEach(json.putObject("behind")::put);
        status.serving().forEach(json.putObject("serving")::put);
        status.lost().forEach(json.putObject("lost")::put);
        ArrayNode stages = json.putArray("idle_stages");
        status.idleStages().forEach(stages::add);
        ArrayNode alarms = json.putArray("alarms");
        status.alarms().forEach(alarm -> alarms.add(alarm.text()));
    }

    /**
     * How many records lie before each role, by its consumer group; a sentence in their place where that may not be asked.
     *
     * @param admin of the same cluster; stays the caller's
     */
    public static ObjectNode lags(LogConnection connection, Admin admin) throws InterruptedException {
        ObjectNode json = com.fasterxml.jackson.databind.node.JsonNodeFactory.instance.objectNode();
        Map<String, String> groups = new LinkedHashMap<>();
        for (String role : List.of("generator", "scorer", "topology", "learner")) {
            groups.put(connection.group(role), role);
        }
        Optional<String> why = Optional.empty();
        try {
            new ConsumerLag(admin, groups).read().forEach(json.putObject("behind")::put);
        } catch (ExecutionException e) {
            why = Optional.of(
                    e.getCause() instanceof GroupAuthorizationException
                            ? "it takes DESCRIBE on groups that begin with "
                                    + connection.topics().prefix()
                            : String.valueOf(
                                    e.getCause() == null
                                            ? e.getMessage()
                                            : e.getCause().getMessage()));
        } catch (TimeoutException e) {
            why = Optional.of("the cluster does not answer");
        }
        why.ifPresent(sentence -> json.put("why", sentence));
        return json;
    }
}
