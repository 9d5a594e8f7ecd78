package dev.millrace.view.index;

import dev.millrace.audit.trace.DeadLetter;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.schemas.run.RunTopics;
import java.sql.SQLException;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Dead letters, and which of them were redriven. */
final class LetterIndexer {
    private final RunTopics topics;

    LetterIndexer(RunTopics topics) {
        this.topics = topics;
    }

    /** @return whether it is a letter or a mark */
    boolean letter(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<RedriveMark> mark = RedriveMark.of(record);
        if (mark.isPresent()) {
            statements.run(
                    "UPDATE letter SET redriven = ? WHERE partition = ? AND offset = ?",
                    mark.get().newOffset(),
                    mark.get().letterPartition(),
                    mark.get().letterOffset());
            if (mark.get().sourceTopic().equals(topics.rollouts())) {
                statements.run(
                        "UPDATE rollout SET redriven = ? WHERE partition = ? AND offset = ?",
                        mark.get().newOffset(),
                        mark.get().sourcePartition(),
                        mark.get().sourceOffset());
            }
            return true;
        }
        Optional<DeadLetter> found = DeadLetter.of(record);
        if (found.isEmpty()) {
            return false;
        }
        DeadLetter letter = found.get();
        statements.run(
                "INSERT INTO letter(partition, offset, written_ms, reason, field, message, source, rollout, redriven)"
                        + " VALUES(?, ?, ?, ?, ?, ?, ?, ?, -1) ON CONFLICT DO NOTHING",
                letter.partition(),
                letter.offset(),
                letter.writtenAtMs(),
                letter.reason(),
                letter.field(),
                letter.message(),
                letter.source(),
                letter.rolloutId());
        if (letter.sourceTopic().equals(topics.rollouts())) {
            statements.run(
                    "INSERT INTO rollout(partition, offset, id, grp, refused) VALUES(?, ?, ?, ?, ?)"
                            + " ON CONFLICT DO UPDATE SET refused = excluded.refused",
                    letter.sourcePartition(),
                    letter.sourceOffset(),
                    letter.rolloutId(),
                    letter.rolloutId().contains("/")
                            ? letter.rolloutId().substring(0, letter.rolloutId().lastIndexOf('/'))
                            : "",
                    letter.reason());
        }
        return true;
    }
}
