package dev.millrace.view.index;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.run.VersionKey;
import java.sql.SQLException;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Published versions, and who serves which since when. */
final class VersionIndexer {
    /** The version that the first gap of an epoch follows; takes the epoch. */
    private static final String BEFORE_GAP = "(SELECT min(version) FROM version AS last WHERE epoch = ? AND NOT EXISTS"
            + " (SELECT 1 FROM version AS next WHERE next.epoch = last.epoch AND next.version = last.version + 1))";

    private final OwnRecords records;

    VersionIndexer(OwnRecords records) {
        this.records = records;
    }

    void version(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        if (record.value() == null) {
            forget(record, statements);
            return;
        }
        Optional<PolicyVersion> decoded = records.decoded(record, PolicyVersion.class, PolicyVersion::getRunId);
        if (decoded.isPresent()) {
            PolicyVersion version = decoded.get();
            statements.run(
                    "INSERT INTO version(epoch, version, parent, batch, published_ms, bytes, base, anchor, sha256, optimizer, partition,"
                            + " offset) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    version.getEpoch(),
                    version.getVersion(),
                    version.getParentVersion(),
                    version.getBatchId(),
                    version.getPublishedAtMs(),
                    version.getWeights().getTensors().stream()
                            .mapToLong(VersionIndexer::bytes)
                            .sum(),
                    version.getWeights().getBaseVersion(),
                    version.getWeights().getAnchorVersion(),
                    version.getWeights().getSha256(),
                    version.getOptimizer() == null
                            ? null
                            : version.getOptimizer().getTensors().stream()
                                    .mapToLong(VersionIndexer::bytes)
                                    .sum(),
                    record.partition(),
                    record.offset());
        }
    }

    /** A learner deletes what does not extend its chain; what is on the chain stays. */
    private static void forget(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<VersionKey> key = VersionKey.parse(record.key());
        if (key.isPresent()) {
            statements.run(
                    "DELETE FROM version WHERE epoch = ? AND version = ? AND version > " + BEFORE_GAP,
                    key.get().epoch(),
                    key.get().version(),
                    key.get().epoch());
        }
    }

    /** On the log: a delta's where it is one. */
    private static long bytes(TensorEntry tensor) {
        return tensor.getEncodedBytes() == null ? tensor.getBytes() : tensor.getEncodedBytes();
    }

    void serving(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<Serving> decoded = records.decoded(record, Serving.class, Serving::getRunId);
        if (decoded.isPresent()) {
            Serving serving = decoded.get();
            statements.run(
                    "INSERT INTO server(server, role, version, since_ms, heartbeat_ms, tokens, left, tokens_before, heartbeat_before_ms)"
                            + " VALUES(?, ?, ?, ?, ?, ?, ?, NULL, NULL) ON CONFLICT DO UPDATE SET tokens_before = tokens,"
                            + " heartbeat_before_ms = heartbeat_ms, role = excluded.role, version = excluded.version,"
                            + " since_ms = excluded.since_ms, heartbeat_ms = excluded.heartbeat_ms, tokens = excluded.tokens,"
                            + " left = excluded.left WHERE excluded.heartbeat_ms > heartbeat_ms",
                    serving.getServerId(),
                    serving.getRole().name(),
                    serving.getVersion(),
                    serving.getSinceMs(),
                    serving.getHeartbeatMs(),
                    serving.getTokens(),
                    serving.getLeft() ? 1 : 0);
            statements.run(
                    "INSERT INTO served(server, epoch, version, role, since_ms) VALUES(?, ?, ?, ?, ?)"
                            + " ON CONFLICT DO UPDATE SET since_ms = min(since_ms, excluded.since_ms)",
                    serving.getServerId(),
                    serving.getEpoch(),
                    serving.getVersion(),
                    serving.getRole().name(),
                    serving.getSinceMs());
        }
    }
}
