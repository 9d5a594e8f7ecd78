package dev.millrace.view.index;

import dev.millrace.log.scan.LogReader;
import dev.millrace.runtime.evaluation.EvaluationJson;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.index.RecordIndexer.OwnRecords;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Evaluations in the index, the newest record per version and prompts. */
public final class EvaluationIndex {
    static final String TABLE =
            "CREATE TABLE IF NOT EXISTS evaluation(epoch INTEGER, version INTEGER, data TEXT, finished_ms INTEGER,"
                    + " json TEXT, PRIMARY KEY(epoch, version, data)) WITHOUT ROWID";
    private static final Duration LOOK = Duration.ofSeconds(10);

    private final OwnRecords records;

    EvaluationIndex(OwnRecords records) {
        this.records = records;
    }

    boolean evaluation(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        VersionEvaluation evaluation = records.decoded(record, VersionEvaluation.class, VersionEvaluation::getRunId);
        if (evaluation == null) {
            return false;
        }
        statements.run(
                "INSERT INTO evaluation(epoch, version, data, finished_ms, json) VALUES(?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                        + " finished_ms = excluded.finished_ms, json = excluded.json WHERE excluded.finished_ms >= finished_ms",
                evaluation.getEpoch(),
                evaluation.getVersion(),
                evaluation.getDataSha256(),
                evaluation.getFinishedAtMs(),
                EvaluationJson.whole(evaluation).toString());
        return true;
    }

    /** Topics that the run has: an older one has no evaluations. */
    public static List<String> without(List<String> all, RunTopics topics, LogReader log) {
        return log.consumer().listTopics(LOOK).containsKey(topics.evaluations())
                ? all
                : all.stream()
                        .filter(topic -> !topic.equals(topics.evaluations()))
                        .toList();
    }

    /** Comparable evaluations of an epoch, those on the newest prompts, by version. */
    public static void read(RunIndex index, int epoch, RunIndex.Row row) {
        index.read(
                "SELECT json FROM evaluation WHERE epoch = ? AND data = (SELECT data FROM evaluation WHERE epoch = ?"
                        + " ORDER BY finished_ms DESC, version DESC LIMIT 1) ORDER BY version",
                List.of(epoch, epoch),
                row);
    }
}
