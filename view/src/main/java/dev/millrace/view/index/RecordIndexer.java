package dev.millrace.view.index;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.redrive.DeadLetter;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * Puts records of a run into its index, in whatever order they come, also twice. What does not decode or is of another run is passed over: the run's
 * own roles have refused it. Owned by one thread.
 */
public final class RecordIndexer {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final RunTopics topics;
    private final String runId;
    private final SchemaRegistry registry;
    private final Map<Class<?>, Deserializer<?>> deserializers = new HashMap<>();

    public RecordIndexer(RunTopics topics, String runId, SchemaRegistry registry) {
        this.topics = topics;
        this.runId = runId;
        this.registry = registry;
    }

    /** Topics that are few and short records, of which the newest matter first. */
    public static List<String> newest(RunTopics topics) {
        return List.of(
                topics.trainingLog(),
                topics.serving(),
                topics.policyVersions(),
                topics.evaluations(),
                topics.deadLetters());
    }

    /** Topics with a record or more for each rollout. */
    public static List<String> many(RunTopics topics) {
        return List.of(topics.batches(), topics.rollouts(), topics.outcomes(), topics.trajectories(), topics.prompts());
    }

    /** Where to read on from; empty for the beginning. */
    public static Optional<Long> position(RunIndex index, String topic, int partition) {
        return index.numbers("SELECT next FROM position WHERE topic = ? AND partition = ?", topic, partition).stream()
                .findFirst();
    }

    /** What was put in by one call. */
    public record Taken(boolean steps, boolean letters) {}

    /**
     * Puts records in, in one transaction.
     *
     * @param records of any topics
     * @param positions whether to note that everything before them is in, by which a restart goes on
     */
    public Taken take(RunIndex index, Iterable<ConsumerRecord<byte[], byte[]>> records, boolean positions) {
        boolean[] found = new boolean[2];
        index.write(connection -> {
            Statements statements = new Statements(connection);
            Map<String, Map<Integer, Long>> next = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                one(record, statements, found);
                next.computeIfAbsent(record.topic(), topic -> new HashMap<>())
                        .merge(record.partition(), record.offset() + 1, Math::max);
            }
            if (positions) {
                for (Map.Entry<String, Map<Integer, Long>> topic : next.entrySet()) {
                    for (Map.Entry<Integer, Long> partition : topic.getValue().entrySet()) {
                        statements.run(
                                "INSERT INTO position(topic, partition, next) VALUES(?, ?, ?)"
                                        + " ON CONFLICT DO UPDATE SET next = excluded.next",
                                topic.getKey(),
                                partition.getKey(),
                                partition.getValue());
                    }
                }
            }
            statements.close();
        });
        return new Taken(found[0], found[1]);
    }

    private void one(ConsumerRecord<byte[], byte[]> record, Statements statements, boolean[] found)
            throws SQLException {
        String topic = record.topic();
        if (topic.equals(topics.trainingLog())) {
            found[0] |= step(record, statements);
        } else if (topic.equals(topics.rollouts())) {
            rollout(record, statements);
        } else if (topic.equals(topics.trajectories())) {
            trajectory(record, statements);
        } else if (topic.equals(topics.batches())) {
            batch(record, statements);
        } else if (topic.equals(topics.outcomes())) {
            outcome(record, statements);
        } else if (topic.equals(topics.prompts())) {
            prompt(record, statements);
        } else if (topic.equals(topics.policyVersions())) {
            version(record, statements);
        } else if (topic.equals(topics.serving())) {
            serving(record, statements);
        } else if (topic.equals(topics.evaluations())) {
            Optional<VersionEvaluation> evaluation = decoded(record, VersionEvaluation.class)
                    .filter(it -> it.getRunId().equals(runId));
            if (evaluation.isPresent()) {
                EvaluationIndex.put(evaluation.get(), statements);
                found[0] = true;
            }
        } else if (topic.equals(topics.deadLetters())) {
            found[1] |= letter(record, statements);
        }
    }

    private <T extends SpecificRecord> Optional<T> decoded(ConsumerRecord<byte[], byte[]> record, Class<T> type) {
        Deserializer<?> deserializer = deserializers.computeIfAbsent(
                type, unseen -> AvroSerde.of(type, registry).deserializer());
        try {
            return Optional.ofNullable(type.cast(deserializer.deserialize(record.topic(), record.value())));
        } catch (MalformedRecordException e) {
            return Optional.empty();
        }
    }

    private boolean step(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
        Optional<TrainingStep> decoded = decoded(record, TrainingStep.class);
        if (decoded.isEmpty() || !decoded.get().getRunId().equals(runId)) {
            return false;
        }
        TrainingStep step = decoded.get();
        List<StepEntry> entries = step.getEntries();
        int known = statements.run(
                "INSERT INTO step(epoch, batch, version, starved, started_ms, finished_ms, partition, offset, entries, json)"
                        + " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                step.getEpoch(),
                step.getBatchId(),
                step.getVersion(),
                step.getStarved() ? 1 : 0,
                step.getStartedAtMs(),
                step.getFinishedAtMs(),
                record.partition(),
                record.offset(),
                entries == null ? null : lastWords(entries),
                json(step));
        if (known > 0 && entries != null) {
            for (int e = 0; e < entries.size(); e++) {
                statements.run(
                        "UPDATE rollout SET trained_tokens = ?, masked_by = ? WHERE batch = ? AND entry = ? AND epoch = ?",
                        entries.get(e).getTrainedTokens(),
                        entries.get(e).getMaskedBy(),
                        step.getBatchId(),
                        e,
                        step.getEpoch());
            }
        }
        return known > 0;
    }

    private static String json(TrainingStep step) {
        ObjectNode json = JSON.createObjectNode()
                .put("batch", step.getBatchId())
                .put("version", step.getVersion())
                .put("reward", step.getRewardMean())
                .put("staleness_mean", step.getStalenessMean())
                .put("staleness_max", step.getStalenessMax())
                .put("staleness_in_flight", step.getStalenessInFlightMean())
                .put("staleness_in_queue", step.getStalenessInQueueMean())
                .put("ess", step.getEssRatio())
                .put("ess_truncated", step.getEssRatioTruncated())
                .put("second_moment", step.getSecondMoment())
                .put("second_moment_trained", step.getSecondMomentTrained())
                .put("learning_rate", step.getLearningRate())
                .put("rollouts_trained", step.getRolloutsTrained())
                .put("rollouts_masked", step.getRolloutsMasked())
                .put("tokens_trained", step.getTokensTrained())
                .put("tokens_trainable", step.getTokensTrainable())
                .put("starved", step.getStarved())
                .put("started_ms", step.getStartedAtMs())
                .put("finished_ms", step.getFinishedAtMs());
        ObjectNode metrics = json.putObject("metrics");
        step.getMetrics().forEach((name, value) -> {
            if (Double.isFinite(value)) {
                metrics.put(name, value);
            }
        });
        return text(json);
    }

    private static String lastWords(List<StepEntry> entries) {
        var array = JSON.createArrayNode();
        entries.forEach(entry -> array.addArray().add(entry.getTrainedTokens()).add(entry.getMaskedBy()));
        return text(array);
    }

    private static String text(com.fasterxml.jackson.databind.JsonNode json) {
        try {
            return JSON.writeValueAsString(json);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("numbers and names cannot be written as JSON", e);
        }
    }

    private void rollout(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
        Optional<Rollout> decoded =
                decoded(record, Rollout.class).filter(it -> it.getRunId().equals(runId));
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

    private void trajectory(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
        Optional<Trajectory> decoded =
                decoded(record, Trajectory.class).filter(it -> it.getRunId().equals(runId));
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

    private void batch(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
        Optional<LearnerBatch> decoded =
                decoded(record, LearnerBatch.class).filter(it -> it.getRunId().equals(runId));
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
        List<Object[]> lastWords = statements.lastWords(batch.getEpoch(), batch.getBatchId());
        for (int e = 0; e < batch.getEntries().size(); e++) {
            BatchEntry entry = batch.getEntries().get(e);
            boolean anew = e < lastWords.size();
            statements.run(
                    "INSERT INTO rollout(partition, offset, epoch, id, grp, batch, entry, advantage, staleness, trained_tokens, masked_by,"
                            + " trajectory_partition, trajectory_offset) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                            + " ON CONFLICT DO UPDATE SET batch = excluded.batch, entry = excluded.entry, advantage = excluded.advantage,"
                            + " staleness = excluded.staleness, trained_tokens = excluded.trained_tokens, masked_by = excluded.masked_by,"
                            + " trajectory_partition = excluded.trajectory_partition, trajectory_offset = excluded.trajectory_offset",
                    entry.getRolloutPartition(),
                    entry.getRolloutOffset(),
                    batch.getEpoch(),
                    entry.getRolloutId(),
                    entry.getGroupId(),
                    batch.getBatchId(),
                    e,
                    entry.getAdvantage(),
                    expected - entry.getOldestVersion(),
                    anew ? lastWords.get(e)[0] : entry.getTrainedTokens(),
                    anew ? lastWords.get(e)[1] : entry.getMaskedBy(),
                    entry.getPartition(),
                    entry.getOffset());
        }
    }

    private void outcome(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
        Optional<Outcome> decoded = decoded(record, Outcome.class)
                .filter(it ->
                        it.getRunId().equals(runId) && it.getSource().getTopic().equals(topics.rollouts()));
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

    private void prompt(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
        Optional<PromptRequest> decoded =
                decoded(record, PromptRequest.class).filter(it -> it.getRunId().equals(runId));
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

    private void version(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
        Optional<PolicyVersion> decoded =
                decoded(record, PolicyVersion.class).filter(it -> it.getRunId().equals(runId));
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
                            .mapToLong(RecordIndexer::bytes)
                            .sum(),
                    version.getWeights().getBaseVersion(),
                    version.getWeights().getAnchorVersion(),
                    version.getWeights().getSha256(),
                    version.getOptimizer() == null
                            ? null
                            : version.getOptimizer().getTensors().stream()
                                    .mapToLong(RecordIndexer::bytes)
                                    .sum(),
                    record.partition(),
                    record.offset());
        }
    }

    /** On the log: a delta's where it is one. */
    private static long bytes(TensorEntry tensor) {
        return tensor.getEncodedBytes() == null ? tensor.getBytes() : tensor.getEncodedBytes();
    }

    private void serving(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
        Optional<Serving> decoded =
                decoded(record, Serving.class).filter(it -> it.getRunId().equals(runId));
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

    private boolean letter(ConsumerRecord<byte[], byte[]> record, Statements statements) throws SQLException {
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

    /** Statements of one transaction, each prepared once. */
    static final class Statements {
        private final Connection connection;
        private final Map<String, PreparedStatement> prepared = new HashMap<>();

        Statements(Connection connection) {
            this.connection = connection;
        }

        private PreparedStatement prepared(String sql) throws SQLException {
            PreparedStatement known = prepared.get(sql);
            if (known == null) {
                known = connection.prepareStatement(sql);
                prepared.put(sql, known);
            }
            return known;
        }

        /** @return how many rows were changed */
        int run(String sql, @Nullable Object... values) throws SQLException {
            PreparedStatement statement = prepared(sql);
            for (int i = 0; i < values.length; i++) {
                statement.setObject(i + 1, values[i]);
            }
            return statement.executeUpdate();
        }

        /** What the step on a batch has said of its entries: trained tokens and the stage that masked; none where it let the batch's word stand. */
        List<Object[]> lastWords(int epoch, long batchId) throws SQLException {
            PreparedStatement statement = prepared("SELECT entries FROM step WHERE epoch = ? AND batch = ?");
            statement.setInt(1, epoch);
            statement.setLong(2, batchId);
            List<Object[]> words = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                String entries = row.next() ? row.getString(1) : null;
                if (entries != null) {
                    JSON.readTree(entries)
                            .forEach(word -> words.add(new Object[] {
                                word.get(0).asInt(),
                                word.get(1).isNull() ? null : word.get(1).asText()
                            }));
                }
            } catch (JsonProcessingException e) {
                throw new IllegalStateException("the index holds what it did not write", e);
            }
            return words;
        }

        void close() throws SQLException {
            for (PreparedStatement statement : prepared.values()) {
                statement.close();
            }
        }
    }
}
