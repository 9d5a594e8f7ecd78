package dev.millrace.view.index;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.audit.trace.DeadLetter;
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
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.view.index.RecordIndexer.StepIndexer.LastWord;
import java.nio.ByteBuffer;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;

/**
 * Indexes records of a run in any order, also repeatedly. Skips undecodable records and those of other runs. Owned by
 * one thread.
 */
public final class RecordIndexer {
    private final RunTopics topics;
    private final StepIndexer steps;
    private final RolloutIndexer rollouts;
    private final VersionIndexer versions;
    private final LetterIndexer letters;
    private final EvaluationIndex evaluations;

    /** @param tokenizer decodes rollouts; empty if there is none */
    public RecordIndexer(RunTopics topics, String runId, SchemaRegistry registry, Optional<Tokenizer> tokenizer) {
        OwnRecords records = new OwnRecords(runId, registry);
        this.topics = topics;
        this.steps = new StepIndexer(records);
        this.rollouts = new RolloutIndexer(topics, records, tokenizer);
        this.versions = new VersionIndexer(records);
        this.evaluations = new EvaluationIndex(records);
        this.letters = new LetterIndexer(topics);
    }

    /** Topics with few short records, indexed newest first. */
    public static List<String> newest(RunTopics topics) {
        return List.of(
                topics.trainingLog(),
                topics.serving(),
                topics.policyVersions(),
                topics.evaluations(),
                topics.deadLetters());
    }

    public static List<String> many(RunTopics topics) {
        return List.of(topics.batches(), topics.rollouts(), topics.outcomes(), topics.trajectories(), topics.prompts());
    }

    public static Optional<Long> position(RunIndex index, String topic, int partition) {
        return index.numbers("SELECT next FROM position WHERE topic = ? AND partition = ?", topic, partition).stream()
                .findFirst();
    }

    /** What one call indexed. */
    public record Taken(boolean steps, boolean letters) {}

    /**
     * Indexes records in one transaction.
     *
     * @param positions whether to note that everything before them is indexed
     */
    public Taken take(RunIndex index, Iterable<ConsumerRecord<byte[], byte[]>> records, boolean positions) {
        boolean[] found = new boolean[2];
        index.write(statements -> {
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
        });
        if (found[0]) {
            index.noteSteps();
        }
        return new Taken(found[0], found[1]);
    }

    private void one(ConsumerRecord<byte[], byte[]> record, IndexStatements statements, boolean[] found)
            throws SQLException {
        String topic = record.topic();
        if (topic.equals(topics.trainingLog())) {
            found[0] |= steps.step(record, statements);
        } else if (topic.equals(topics.rollouts())) {
            rollouts.rollout(record, statements);
        } else if (topic.equals(topics.trajectories())) {
            rollouts.trajectory(record, statements);
        } else if (topic.equals(topics.batches())) {
            rollouts.batch(record, statements);
        } else if (topic.equals(topics.outcomes())) {
            rollouts.outcome(record, statements);
        } else if (topic.equals(topics.prompts())) {
            rollouts.prompt(record, statements);
        } else if (topic.equals(topics.policyVersions())) {
            versions.version(record, statements);
        } else if (topic.equals(topics.serving())) {
            versions.serving(record, statements);
        } else if (topic.equals(topics.evaluations())) {
            found[0] |= evaluations.evaluation(record, statements);
        } else if (topic.equals(topics.deadLetters())) {
            found[1] |= letters.letter(record, statements);
        }
    }

    static final class LetterIndexer {
        private final RunTopics topics;

        LetterIndexer(RunTopics topics) {
            this.topics = topics;
        }

        boolean letter(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
            Optional<RedriveMark> mark = RedriveMark.of(record);
            if (mark.isPresent()) {
                statements.run(
                        "UPDATE letter SET redriven = ? WHERE partition = ? AND offset = ?",
                        mark.get().newOffset(),
                        mark.get().letterPartition(),
                        mark.get().letterOffset());
                if (mark.get().source().getTopic().equals(topics.rollouts())) {
                    statements.run(
                            "UPDATE rollout SET redriven = ? WHERE partition = ? AND offset = ?",
                            mark.get().newOffset(),
                            mark.get().source().getPartition(),
                            mark.get().source().getOffset());
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
                                ? letter.rolloutId()
                                        .substring(0, letter.rolloutId().lastIndexOf('/'))
                                : "",
                        letter.reason());
            }
            return true;
        }
    }

    /** One row per rollout, filled by its records in any order. */
    static final class RolloutIndexer {
        /** Prompt tail and response head kept as text. */
        private static final int PROMPT_TOKENS = 60;

        private static final int RESPONSE_TOKENS = 120;

        private final RunTopics topics;
        private final OwnRecords records;
        private final Optional<Tokenizer> tokenizer;

        RolloutIndexer(RunTopics topics, OwnRecords records, Optional<Tokenizer> tokenizer) {
            this.topics = topics;
            this.records = records;
            this.tokenizer = tokenizer;
        }

        private @Nullable String promptText(ByteBuffer packed) {
            int[] tokens = PackedInts.toArray(packed);
            boolean isCut = tokens.length > PROMPT_TOKENS;
            String text =
                    text(isCut ? Arrays.copyOfRange(tokens, tokens.length - PROMPT_TOKENS, tokens.length) : tokens);
            return text != null && isCut ? "\u2026" + text : text;
        }

        private @Nullable String responseText(ByteBuffer packed) {
            int[] tokens = PackedInts.toArray(packed);
            boolean isCut = tokens.length > RESPONSE_TOKENS;
            String text = text(isCut ? Arrays.copyOf(tokens, RESPONSE_TOKENS) : tokens);
            return text != null && isCut ? text + "\u2026" : text;
        }

        private @Nullable String text(int[] tokens) {
            try {
                return tokenizer.map(words -> words.decode(tokens)).orElse(null);
            } catch (IllegalArgumentException e) {
                return null; // not of this vocabulary
            }
        }

        void prompt(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
            PromptRequest prompt = records.decoded(record, PromptRequest.class, PromptRequest::getRunId);
            if (prompt != null) {
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
            Rollout rollout = records.decoded(record, Rollout.class, Rollout::getRunId);
            if (rollout == null) {
                return;
            }
            statements.run(
                    "INSERT INTO rollout(partition, offset, epoch, id, grp, sample, ordinal, generator, version_min, version_max, reward,"
                            + " tokens, policy_tokens, prompt_tokens, finish, started_ms, finished_ms, prompt_text, text)"
                            + " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET epoch = excluded.epoch,"
                            + " id = excluded.id, grp = excluded.grp, sample = excluded.sample, ordinal = excluded.ordinal,"
                            + " generator = excluded.generator, version_min = excluded.version_min, version_max = excluded.version_max,"
                            + " reward = excluded.reward, tokens = excluded.tokens, policy_tokens = excluded.policy_tokens,"
                            + " prompt_tokens = excluded.prompt_tokens, finish = excluded.finish, started_ms = excluded.started_ms,"
                            + " finished_ms = excluded.finished_ms, prompt_text = excluded.prompt_text, text = excluded.text",
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
                    rollout.getFinishedAtMs(),
                    promptText(rollout.getPromptTokens()),
                    responseText(rollout.getResponseTokens()));
        }

        void trajectory(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
            Trajectory trajectory = records.decoded(record, Trajectory.class, Trajectory::getRunId);
            if (trajectory == null) {
                return;
            }
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

        /** Mean proximal minus behavior log-prob over trainable tokens; null without one. */
        private static @Nullable Double logRatio(Trajectory trajectory) {
            ByteBuffer mask = trajectory.getMask();
            int length = PackedMask.length(mask);
            if (PackedFloats.length(trajectory.getProximalLogProbs()) != length
                    || PackedFloats.length(trajectory.getBehaviorLogProbs()) != length) {
                return null; // refused and not trained on
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
            LearnerBatch batch = records.decoded(record, LearnerBatch.class, LearnerBatch::getRunId);
            if (batch == null) {
                return;
            }
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
            Outcome outcome = records.decoded(record, Outcome.class, Outcome::getRunId);
            if (outcome != null && outcome.getSource().getTopic().equals(topics.rollouts())) {
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

    static final class VersionIndexer {
        /** Version before an epoch's first gap; takes the epoch. */
        private static final String BEFORE_GAP =
                "(SELECT min(version) FROM version AS last WHERE epoch = ? AND NOT EXISTS"
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
            PolicyVersion version = records.decoded(record, PolicyVersion.class, PolicyVersion::getRunId);
            if (version != null) {
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

        /** A learner deletes only versions off its chain. */
        private static void forget(ConsumerRecord<byte[], byte[]> record, IndexStatements statements)
                throws SQLException {
            Optional<VersionKey> key = VersionKey.parse(record.key());
            if (key.isPresent()) {
                statements.run(
                        "DELETE FROM version WHERE epoch = ? AND version = ? AND version > " + BEFORE_GAP,
                        key.get().epoch(),
                        key.get().version(),
                        key.get().epoch());
            }
        }

        /** Size on the log; a delta's if it is one. */
        private static long bytes(TensorEntry tensor) {
            return tensor.getEncodedBytes() == null ? tensor.getBytes() : tensor.getEncodedBytes();
        }

        void serving(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
            Serving serving = records.decoded(record, Serving.class, Serving::getRunId);
            if (serving != null) {
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

    /** Steps of the training log, and each step's last word on its batch's entries. */
    static final class StepIndexer {
        private static final ObjectMapper JSON = new ObjectMapper();

        private final OwnRecords records;

        StepIndexer(OwnRecords records) {
            this.records = records;
        }

        /** Trained tokens and masking stage; null for none. */
        record LastWord(int trainedTokens, @Nullable String maskedBy) {}

        boolean step(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
            TrainingStep step = records.decoded(record, TrainingStep.class, TrainingStep::getRunId);
            if (step == null) {
                return false;
            }
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
                    .put("ess", step.getStarved() ? null : step.getEssRatio())
                    .put("ess_truncated", step.getStarved() ? null : step.getEssRatioTruncated())
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
            return json.toString();
        }

        private static String lastWords(List<StepEntry> entries) {
            ArrayNode array = JSON.createArrayNode();
            entries.forEach(
                    entry -> array.addArray().add(entry.getTrainedTokens()).add(entry.getMaskedBy()));
            return array.toString();
        }

        /** Empty if the step left the batch's word unchanged. */
        static List<LastWord> lastWords(IndexStatements statements, int epoch, long batchId) throws SQLException {
            String entries = statements.text("SELECT entries FROM step WHERE epoch = ? AND batch = ?", epoch, batchId);
            if (entries == null) {
                return List.of();
            }
            try {
                List<LastWord> words = new ArrayList<>();
                JSON.readTree(entries)
                        .forEach(word -> words.add(new LastWord(
                                word.get(0).asInt(),
                                word.get(1).isNull() ? null : word.get(1).asText())));
                return words;
            } catch (JsonProcessingException e) {
                throw new IllegalStateException("the index holds what it did not write", e);
            }
        }
    }

    /** Decodes records of one run; skips undecodable ones and those of other runs. Owned by one thread. */
    static final class OwnRecords {
        private final String runId;
        private final SchemaRegistry registry;
        private final Map<Class<?>, Deserializer<?>> deserializers = new HashMap<>();

        OwnRecords(String runId, SchemaRegistry registry) {
            this.runId = runId;
            this.registry = registry;
        }

        <T extends SpecificRecord> @Nullable T decoded(
                ConsumerRecord<byte[], byte[]> record, Class<T> type, Function<T, String> of) {
            Deserializer<?> deserializer = deserializers.computeIfAbsent(
                    type, unseen -> AvroSerde.of(type, registry).deserializer());
            try {
                T read = type.cast(deserializer.deserialize(record.topic(), record.value()));
                return read != null && of.apply(read).equals(runId) ? read : null;
            } catch (MalformedRecordException e) {
                return null;
            }
        }
    }
}
