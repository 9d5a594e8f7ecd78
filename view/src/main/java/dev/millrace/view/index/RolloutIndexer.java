package dev.millrace.view.index;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.index.StepIndexer.LastWord;
import java.nio.ByteBuffer;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.jspecify.annotations.Nullable;

/** A row for each rollout, to which prompt, rollout, trajectory, batch and outcome add in whatever order they come. */
final class RolloutIndexer {
    private final RunTopics topics;
    private final OwnRecords records;

    RolloutIndexer(RunTopics topics, OwnRecords records) {
        this.topics = topics;
        this.records = records;
    }

    void prompt(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<PromptRequest> decoded = records.decoded(record, PromptRequest.class, PromptRequest::getRunId);
        if (decoded.isPresent()) {
            PromptRequest prompt = decoded.get();
            statements.run(
                    "INSERT INTO prompt(grp, epoch, ordinal, partition, offset, released_ms, samples) VALUES(?, ?, ?, ?, ?, ?, ?)"
                            + " ON CONFLICT DO NOTHING",
                    prompt.getGroupId(),
                    prompt.getEpoch(),
                    prompt.getOrdinal(),
                    record.partition(),
                    record.offset(),
                    prompt.getReleasedAtMs(),
                    prompt.getSamples());
        }
    }

    void rollout(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<Rollout> decoded = records.decoded(record, Rollout.class, Rollout::getRunId);
        if (decoded.isEmpty()) {
            return;
        }
        Rollout rollout = decoded.get();
        statements.run(
                "INSERT INTO rollout(partition, offset, epoch, id, grp, sample, ordinal, generator, version_min, version_max, reward,"
                        + " tokens, policy_tokens, prompt_tokens, finish, started_ms, finished_ms)"
                        + " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET epoch = excluded.epoch,"
                        + " id = excluded.id, grp = excluded.grp, sample = excluded.sample, ordinal = excluded.ordinal,"
                        + " generator = excluded.generator, version_min = excluded.version_min, version_max = excluded.version_max,"
                        + " reward = excluded.reward, tokens = excluded.tokens, policy_tokens = excluded.policy_tokens,"
                        + " prompt_tokens = excluded.prompt_tokens, finish = excluded.finish, started_ms = excluded.started_ms,"
                        + " finished_ms = excluded.finished_ms",
                record.partition(),
                record.offset(),
                rollout.getEpoch(),
                rollout.getRolloutId(),
                rollout.getGroupId(),
                rollout.getSampleIndex(),
                rollout.getOrdinal(),
                rollout.getGeneratorId(),
                rollout.getVersionSpans().stream()
                        .mapToLong(VersionSpan::getVersion)
                        .min()
                        .orElse(-1),
                rollout.getVersionSpans().stream()
                        .mapToLong(VersionSpan::getVersion)
                        .max()
                        .orElse(-1),
                rollout.getReward(),
                PackedInts.length(rollout.getResponseTokens()),
                PackedMask.count(rollout.getMask()),
                PackedInts.length(rollout.getPromptTokens()),
                rollout.getFinishReason().name(),
                rollout.getStartedAtMs(),
                rollout.getFinishedAtMs());
    }

    void trajectory(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<Trajectory> decoded = records.decoded(record, Trajectory.class, Trajectory::getRunId);
        if (decoded.isEmpty()) {
            return;
        }
        Trajectory trajectory = decoded.get();
        statements.run(
                "INSERT INTO rollout(partition, offset, epoch, id, grp, log_ratio, proximal_version, trajectory_partition,"
                        + " trajectory_offset) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET log_ratio = excluded.log_ratio,"
                        + " proximal_version = excluded.proximal_version, trajectory_partition = excluded.trajectory_partition,"
                        + " trajectory_offset = excluded.trajectory_offset",
                trajectory.getRolloutSource().getPartition(),
                trajectory.getRolloutSource().getOffset(),
                trajectory.getEpoch(),
                trajectory.getRolloutId(),
                trajectory.getGroupId(),
                logRatio(trajectory),
                trajectory.getProximalVersion(),
                record.partition(),
                record.offset());
    }

    /** Mean of proximal less behavior over the tokens that may be trained on; null without one. */
    private static @Nullable Double logRatio(Trajectory trajectory) {
        ByteBuffer mask = trajectory.getMask();
        int length = PackedMask.length(mask);
        if (PackedFloats.length(trajectory.getProximalLogProbs()) != length
                || PackedFloats.length(trajectory.getBehaviorLogProbs()) != length) {
            return null; // refused, as nobody trains on it
        }
        double sum = 0;
        int count = 0;
        for (int t = 0; t < length; t++) {
            if (PackedMask.get(mask, t) == 1) {
                sum += PackedFloats.get(trajectory.getProximalLogProbs(), t)
                        - PackedFloats.get(trajectory.getBehaviorLogProbs(), t);
                count++;
            }
        }
        return count == 0 || !Double.isFinite(sum) ? null : sum / count;
    }

    void batch(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<LearnerBatch> decoded = records.decoded(record, LearnerBatch.class, LearnerBatch::getRunId);
        if (decoded.isEmpty()) {
            return;
        }
        LearnerBatch batch = decoded.get();
        long expected = batch.getExpectedVersion() < 0 ? batch.getAssembledVersion() : batch.getExpectedVersion();
        int known = statements.run(
                "INSERT INTO batch(epoch, batch, assembled_version, expected_version, assembled_ms, partition, offset)"
                        + " VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                batch.getEpoch(),
                batch.getBatchId(),
                batch.getAssembledVersion(),
                expected,
                batch.getAssembledAtMs(),
                record.partition(),
                record.offset());
        if (known == 0) {
            return; // a copy: the first is the one that counts
        }
        List<LastWord> lastWords = StepIndexer.lastWords(statements, batch.getEpoch(), batch.getBatchId());
        for (int e = 0; e < batch.getEntries().size(); e++) {
            BatchEntry entry = batch.getEntries().get(e);
            boolean anew = e < lastWords.size();
            statements.run(
                    "INSERT INTO rollout(partition, offset, epoch, id, grp, batch, entry, advantage, staleness, trained_tokens, masked_by,"
                            + " trajectory_partition, trajectory_offset) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                            + " ON CONFLICT DO UPDATE SET batch = excluded.batch, entry = excluded.entry, advantage = excluded.advantage,"
                            + " staleness = excluded.staleness, trained_tokens = excluded.trained_tokens, masked_by = excluded.masked_by,"
                            + " trajectory_partition = excluded.trajectory_partition, trajectory_offset = excluded.trajectory_offset"
                            + " WHERE rollout.batch IS NULL", // another batch that has it is refused
                    entry.getRolloutPartition(),
                    entry.getRolloutOffset(),
                    batch.getEpoch(),
                    entry.getRolloutId(),
                    entry.getGroupId(),
                    batch.getBatchId(),
                    e,
                    entry.getAdvantage(),
                    expected - entry.getOldestVersion(),
                    anew ? lastWords.get(e).trainedTokens() : entry.getTrainedTokens(),
                    anew ? lastWords.get(e).maskedBy() : entry.getMaskedBy(),
                    entry.getPartition(),
                    entry.getOffset());
        }
    }

    void outcome(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<Outcome> decoded = records.decoded(record, Outcome.class, Outcome::getRunId)
                .filter(outcome -> outcome.getSource().getTopic().equals(topics.rollouts()));
        if (decoded.isPresent()) {
            Outcome outcome = decoded.get();
            statements.run(
                    "INSERT INTO rollout(partition, offset, epoch, id, grp, dropped, outcome_partition, outcome_offset)"
                            + " VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET dropped = excluded.dropped,"
                            + " outcome_partition = excluded.outcome_partition, outcome_offset = excluded.outcome_offset",
                    outcome.getSource().getPartition(),
                    outcome.getSource().getOffset(),
                    outcome.getEpoch(),
                    outcome.getRolloutId(),
                    outcome.getGroupId(),
                    outcome.getReason(),
                    record.partition(),
                    record.offset());
        }
    }
}
