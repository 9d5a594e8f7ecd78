package dev.millrace.learner.repair;

import dev.millrace.learner.batch.BatchProgress;
import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.PolicyPartition;
import dev.millrace.weights.WeightsConfig;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Goes the ways out that a {@link RunExaminer} found and that are no new epoch. Each is one transaction or one call, so that it is
 * done wholly or not at all, and may be done again.
 */
public final class Repair {
    /** Why the rollouts of a batch that was given up have left. */
    private static final String BATCH_LOST = "batch-lost";

    private static final int TRANSACTION_TIMEOUT_MS = 60_000;

    private final LogConnection connection;
    private final WeightsConfig weights;
    private final Duration patience;
    private final Clock clock;

    /** @param patience how long to wait while nothing arrives */
    public Repair(LogConnection connection, WeightsConfig weights, Duration patience, Clock clock) {
        this.connection = connection;
        this.weights = weights;
        this.patience = patience;
        this.clock = clock;
    }

    /**
     * Puts committed offsets back into what their topics hold.
     *
     * @return how many were moved
     * @throws RepairException if a role still runs, or the cluster does not let us
     */
    public int moveOffsets(Examined examined) {
        try (Admin admin = Admin.create(connection.admin())) {
            examined.outside()
                    .forEach((group, offsets) -> CommittedOffsets.answer(
                            admin.alterConsumerGroupOffsets(group, offsets).all()));
        }
        return examined.outside().values().stream().mapToInt(Map::size).sum();
    }

    /**
     * Aborts transactions that were left open, and shuts out whoever writes them until it begins again.
     *
     * @return how many
     */
    public int abortTransactions(Examined examined) {
        try (Admin admin = Admin.create(connection.admin())) {
            new OpenTransactions(admin, clock.millis()).abort(examined.open());
        }
        return examined.open().size();
    }

    /**
     * Gives lost batches up: under the learner's transactional id, which shuts a running one out until it begins again, a starved
     * step for each, an outcome for each rollout that was in them, and the learner's place behind them.
     *
     * <p>Which rollouts were in them is told by the batches, where these are there and only their trajectories are lost, and else by
     * what is left: of those that were joined before the batch that comes next, and
     * neither reached a batch nor left, the ones whose groups were complete first.
     *
     * @return rollouts that are accounted for as lost with the batches
     */
    public int skipBatches(Examined examined) {
        if (examined.lostBatches().isEmpty()) {
            return 0;
        }
        try (LogReader learner = new LogReader(connection, Map.of("group.id", connection.group("learner")));
                TransactionalWriter writer = TransactionalWriter.of(
                        connection,
                        connection.scoped("learner"),
                        TRANSACTION_TIMEOUT_MS,
                        Map.of("client.id", "repair", "linger.ms", 5))) {
            writer.fenceOthers(); // from here on nobody else trains
            String topic = connection.topics().batches();
            TopicPartition batches = new TopicPartition(
                    topic,
                    PolicyPartition.of(
                            connection.run().policyId(),
                            topic,
                            writer.producer().partitionsFor(topic)));
            PolicyVersion tip = tip();
            Left left = left(batches, examined.lostBatches());
            long last = examined.lostBatches().get(examined.lostBatches().size() - 1);
            OffsetAndMetadata behind = new OffsetAndMetadata(
                    left.next(), new BatchProgress(last, tip.getRolloutsConsumed(), tip.getVersion()).text());
            writer.write(out -> {
                examined.lostBatches()
                        .forEach(batch -> send(
                                out,
                                connection.topics().trainingLog(),
                                connection.run().policyId(),
                                TrainingStep.class,
                                step(tip, batch)));
                left.rollouts()
                        .forEach(rollout -> send(
                                out,
                                connection.topics().outcomes(),
                                rollout.groupId(),
                                Outcome.class,
                                outcome(rollout)));
                out.sendOffsetsToTransaction(
                        Map.of(batches, behind), learner.consumer().groupMetadata());
            });
            return left.rollouts().size();
        }
    }

    private PolicyVersion tip() {
        try (PolicyFeed feed = new PolicyFeed(connection, weights)) {
            return feed.newestCommitted()
                    .orElseThrow(() -> new RepairException("the run has no version to stay at", null));
        }
    }

    /** A rollout that was joined and went no further. */
    private record Joined(String rolloutId, String groupId, long newestVersion, LogCoordinates source) {
        static Joined of(Trajectory trajectory) {
            return new Joined(
                    trajectory.getRolloutId(),
                    trajectory.getGroupId(),
                    trajectory.getVersionSpans().stream()
                            .mapToLong(VersionSpan::getVersion)
                            .max()
                            .orElse(-1),
                    trajectory.getRolloutSource());
        }

        static Joined of(LearnerBatch batch, BatchEntry entry, String rollouts) {
            return new Joined(
                    entry.getRolloutId(),
                    entry.getGroupId(),
                    batch.getAssembledVersion(),
                    new LogCoordinates(rollouts, entry.getRolloutPartition(), entry.getRolloutOffset()));
        }
    }

    /**
     * What lost batches left behind.
     *
     * @param next offset at which the learner goes on
     */
    private record Left(List<Joined> rollouts, long next) {}

    private Left left(TopicPartition batches, List<Long> lost) {
        Set<String> settled = new HashSet<>();
        TrainingPast past = new TrainingPast();
        Map<Long, Long> writtenAt = new HashMap<>();
        Map<String, List<Joined>> groups = new HashMap<>();
        Map<String, Long> joinedAt = new HashMap<>();
        Map<Long, List<Joined>> unusable = new TreeMap<>();
        long end;
        try (TopicScan scan = new TopicScan(connection, patience)) {
            ConsistentCut cut = scan.cut(List.of(
                    batches.topic(),
                    connection.topics().outcomes(),
                    connection.topics().trajectories()));
            end = cut.of(batches).end();
            scan.read(
                    batches.topic(),
                    cut,
                    record -> decoded(record, LearnerBatch.class)
                            .filter(batch -> connection.run().owns(batch.getRunId(), batch.getEpoch()))
                            .ifPresent(batch -> {
                                batch.getEntries().forEach(entry -> settled.add(entry.getRolloutId()));
                                past.batch(
                                        batch.getBatchId(), batch.getEntries().size(), record.offset());
                                writtenAt.putIfAbsent(batch.getBatchId(), record.timestamp());
                                if (lost.contains(batch.getBatchId())) {
                                    unusable.putIfAbsent(
                                            batch.getBatchId(),
                                            batch.getEntries().stream()
                                                    .map(entry -> Joined.of(
                                                            batch,
                                                            entry,
                                                            connection.topics().rollouts()))
                                                    .toList());
                                }
                            }));
            scan.read(
                    connection.topics().outcomes(),
                    cut,
                    record -> decoded(record, Outcome.class)
                            .filter(outcome -> connection.run().owns(outcome.getRunId(), outcome.getEpoch()))
                            .ifPresent(outcome -> settled.add(outcome.getRolloutId())));
            scan.read(
                    connection.topics().trajectories(),
                    cut,
                    record -> decoded(record, Trajectory.class)
                            .filter(it -> connection.run().owns(it.getRunId(), it.getEpoch()))
                            .filter(it -> settled.add(it.getRolloutId()))
                            .ifPresent(it -> {
                                groups.computeIfAbsent(it.getGroupId(), unseen -> new ArrayList<>())
                                        .add(Joined.of(it));
                                joinedAt.merge(it.getGroupId(), record.timestamp(), Math::max);
                            }));
        }
        long next = past.firstFrom(lost.get(lost.size() - 1) + 1);
        long before = writtenAt.getOrDefault(next, Long.MAX_VALUE);
        List<Joined> rollouts = new ArrayList<>();
        unusable.values().forEach(rollouts::addAll);
        int wanted = rollouts.size() + past.usualRollouts() * (lost.size() - unusable.size());
        joinedAt.entrySet().stream()
                .filter(group -> group.getValue() <= before)
                .sorted(Map.Entry.<String, Long>comparingByValue().thenComparing(Map.Entry.comparingByKey()))
                .map(group -> groups.getOrDefault(group.getKey(), List.of()))
                .filter(members -> rollouts.size() + members.size() <= wanted)
                .forEachOrdered(rollouts::addAll);
        return new Left(rollouts, next < 0 ? end : past.offset(next));
    }

    private <T extends SpecificRecord> Optional<T> decoded(ConsumerRecord<byte[], byte[]> record, Class<T> type) {
        try {
            return Optional.ofNullable(AvroSerde.of(type, connection.registry())
                    .deserializer()
                    .deserialize(record.topic(), record.value()));
        } catch (MalformedRecordException e) {
            return Optional.empty(); // a dead letter by the role that reads it
        }
    }

    private TrainingStep step(PolicyVersion tip, long batch) {
        long now = clock.millis();
        return TrainingStep.newBuilder()
                .setRunId(connection.run().runId())
                .setEpoch(connection.run().epoch())
                .setPolicyId(connection.run().policyId())
                .setBatchId(batch)
                .setVersion(tip.getVersion())
                .setWeightsSha256(tip.getWeights().getSha256())
                .setRolloutsTrained(0)
                .setRolloutsMasked(0)
                .setTokensTrained(0)
                .setRewardMean(0)
                .setLearningRate(0)
                .setMetrics(Map.of())
                .setStartedAtMs(now)
                .setFinishedAtMs(now)
                .setEntries(List.of())
                .setStarved(true)
                .setRolloutsConsumed(tip.getRolloutsConsumed())
                .build();
    }

    private Outcome outcome(Joined rollout) {
        return new Outcome(
                connection.run().runId(),
                connection.run().epoch(),
                rollout.rolloutId(),
                rollout.groupId(),
                "repair",
                BATCH_LOST,
                "its batch, or what that names, is no longer on the log and was given up",
                rollout.newestVersion(),
                rollout.source(),
                clock.millis());
    }

    private <T extends SpecificRecord> void send(
            Producer<byte[], byte[]> out, String topic, String key, Class<T> type, T record) {
        out.send(new ProducerRecord<>(
                topic,
                key.getBytes(StandardCharsets.UTF_8),
                AvroSerde.of(type, connection.registry()).serializer().serialize(topic, record)));
    }
}
