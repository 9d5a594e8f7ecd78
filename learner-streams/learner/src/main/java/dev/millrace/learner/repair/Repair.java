package dev.millrace.learner.repair;

import dev.millrace.learner.batch.BatchProgress;
import dev.millrace.learner.repair.JoinedRollouts.Joined;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.transaction.AcknowledgedProducer;
import dev.millrace.log.transaction.FencedWriterException;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.PolicyPartition;
import dev.millrace.weights.WeightsConfig;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.admin.Admin;
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

    private static final int ATTEMPTS = 5;
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
     * Moves committed offsets back into the ranges that their topics hold.
     *
     * @return how many were moved
     * @throws RepairException if a role still runs, or the cluster denies access
     */
    public int moveOffsets(Examined examined) {
        try (Admin admin = Admin.create(connection.as("repair").admin())) {
            examined.outside()
                    .forEach((group, offsets) -> CommittedOffsets.answer(
                            admin.alterConsumerGroupOffsets(group, offsets).all()));
        }
        return examined.outside().values().stream().mapToInt(Map::size).sum();
    }

    /**
     * Aborts transactions that were left open, and fences their writers until they restart.
     *
     * @return how many
     */
    public int abortTransactions(Examined examined) {
        try (Admin admin = Admin.create(connection.as("repair").admin())) {
            new OpenTransactions(admin, clock.millis()).abort(examined.open());
        }
        return examined.open().size();
    }

    /**
     * Gives lost batches up under the learner's transactional id, which fences a running learner until it restarts.
     * Writes a starved step for each batch, an outcome for each of its rollouts, and the learner's offset after them.
     *
     * <p>If a batch is on the log and only its trajectories are lost, the batch names its rollouts. Otherwise they are
     * taken from the joined rollouts that neither reached a batch nor left ({@link JoinedRollouts#of}).
     *
     * @return number of rollouts recorded as lost with the batches
     * @throws RepairException if a running learner keeps restarting at the same time
     */
    public int skipBatches(Examined examined) {
        for (int attempt = 1; !examined.lostBatches().isEmpty(); attempt++) {
            try {
                return skip(examined.lostBatches());
            } catch (FencedWriterException e) {
                if (attempt == ATTEMPTS) {
                    throw new RepairException(
                            "a learner opened its transactions at the same time, " + ATTEMPTS
                                    + " times; stop it, and repeat the command",
                            e);
                }
            }
        }
        return 0;
    }

    private int skip(List<Long> lost) {
        try (LogReader learner =
                        new LogReader(connection.as("repair"), Map.of("group.id", connection.group("learner")));
                TransactionalWriter writer = new TransactionalWriter(this::learnersProducer)) {
            writer.fenceOthers(); // from here on nobody else trains, until the learner that owns the id opens it again
            String topic = connection.topics().batches();
            TopicPartition batches = new TopicPartition(
                    topic,
                    PolicyPartition.of(
                            connection.run().policyId(),
                            topic,
                            writer.producer().partitionsFor(topic)));
            long last = lost.get(lost.size() - 1);
            if (consumed(learner, batches) >= last) {
                return 0; // meanwhile
            }
            PolicyVersion tip = tip();
            JoinedRollouts joined = new JoinedRollouts(connection, batches, patience, partition -> Long.MAX_VALUE);
            List<Joined> rollouts = joined.of(lost);
            OffsetAndMetadata behind = new OffsetAndMetadata(
                    joined.offsetBehind(lost),
                    new BatchProgress(last, tip.getRolloutsConsumed(), tip.getVersion()).text());
            writer.write(out -> {
                lost.forEach(batch -> send(
                        out,
                        connection.topics().trainingLog(),
                        connection.run().policyId(),
                        TrainingStep.class,
                        step(tip, batch)));
                rollouts.forEach(rollout ->
                        send(out, connection.topics().outcomes(), rollout.groupId(), Outcome.class, outcome(rollout)));
                out.sendOffsetsToTransaction(
                        Map.of(batches, behind), learner.consumer().groupMetadata());
            });
            return rollouts.size();
        }
    }

    /** The last batch that the learner's group says is consumed; -1 where it says nothing. */
    private static long consumed(LogReader learner, TopicPartition batches) {
        OffsetAndMetadata committed =
                learner.consumer().committed(Set.of(batches)).get(batches);
        return committed == null
                ? -1
                : BatchProgress.parse(committed.metadata())
                        .map(BatchProgress::batchId)
                        .orElse(-1L);
    }

    private Producer<byte[], byte[]> learnersProducer() {
        return new AcknowledgedProducer(connection.producer(Map.of(
                "transactional.id",
                connection.scoped("learner"),
                "transaction.timeout.ms",
                TRANSACTION_TIMEOUT_MS,
                "client.id",
                "repair",
                "linger.ms",
                5)));
    }

    private PolicyVersion tip() {
        try (PolicyFeed feed = new PolicyFeed(connection, weights)) {
            return feed.newestCommitted()
                    .orElseThrow(() -> new RepairException("the run has no version to stay at", null));
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
                "its batch, or a record it references, is no longer on the log and was skipped",
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
