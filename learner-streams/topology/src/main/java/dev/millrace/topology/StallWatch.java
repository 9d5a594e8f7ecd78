package dev.millrace.topology;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.topology.task.InputWaits;
import dev.millrace.topology.task.LogStalls;
import dev.millrace.topology.task.StallAlarms;
import dev.millrace.topology.task.Wait;
import dev.millrace.topology.task.WaitBoard;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.streams.KafkaStreams;

/** Looks, in one life of the engine, at what its stages wait for, and less often at what the log holds back. Used by one thread. */
final class StallWatch implements AutoCloseable {
    /** Every how many looks the log itself is looked at, and how long that may take. */
    private static final int LOOKS_AT_LOG = 10;

    private static final int LOG_ANSWERS_MS = 5_000;

    private final WaitBoard waits;
    private final StallAlarms alarms;
    private final LogStalls log;
    private int looks;

    /** @param alarms outlive the engine */
    StallWatch(TopologyConfig config, LogConnection connection, WaitBoard waits, StallAlarms alarms) {
        this.waits = waits;
        this.alarms = alarms;
        this.log = logStalls(config, connection);
    }

    private static LogStalls logStalls(TopologyConfig config, LogConnection connection) {
        Map<String, Object> limits = Map.of(
                "default.api.timeout.ms",
                LOG_ANSWERS_MS,
                "request.timeout.ms",
                LOG_ANSWERS_MS,
                "group.id",
                connection.group("topology"));
        Map<String, Object> written = new HashMap<>(limits);
        written.put("isolation.level", "read_uncommitted");
        return new LogStalls(
                new LogReader(connection, limits).consumer(),
                new LogReader(connection, written).consumer(),
                MillraceTopology.inputs(config, connection.topics()),
                config.runtime().alarmAfterMs(),
                connection.alarms(),
                connection.command("repair --do abort-transaction"),
                connection.command("repair"));
    }

    /** Looks at the log. */
    void lookAtLog() {
        log.check(monotonicMs());
    }

    /** One look. */
    void look(KafkaStreams streams) {
        List<Wait> all = new ArrayList<>(waits.all());
        all.addAll(InputWaits.of(streams));
        alarms.check(all, monotonicMs());
        if (++looks % LOOKS_AT_LOG == 0) {
            lookAtLog();
        }
    }

    private static long monotonicMs() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    @Override
    public void close() {
        log.close();
    }
}
