package dev.millrace.ledger;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.deadletter.DeadLetters;
import dev.millrace.schemas.run.LogConnection;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * Reads a run's topics once, from their beginning to where they end now, and adds them up.
 *
 * <p>It reads committed records only and joins no consumer group, so it can run beside a live run and leaves no
 * trace. On a live run the topics' ends are not of one moment: rollouts and scores are fixed first and decisions
 * about them last, so that what is decided meanwhile may show as decided about a rollout that is not counted
 * yet; decisions about rollouts beyond the fixed end are therefore left out.
 */
public final class LedgerReader {
    private static final Duration POLL = Duration.ofMillis(250);

    private final LogConnection connection;
    private final RunTopics topics;
    private final Deserializer<Rollout> rollouts;
    private final Deserializer<Score> scores;
    private final Deserializer<LearnerBatch> batches;
    private final Deserializer<TrainingStep> steps;
    private final Deserializer<Outcome> outcomes;

    public LedgerReader(LogConnection connection) {
        this.connection = connection;
        this.topics = connection.topics();
        this.rollouts = deserializer(Rollout.class);
        this.scores = deserializer(Score.class);
        this.batches = deserializer(LearnerBatch.class);
        this.steps = deserializer(TrainingStep.class);
        this.outcomes = deserializer(Outcome.class);
    }

    private <T extends SpecificRecord> Deserializer<T> deserializer(Class<T> type) {
        return AvroSerde.of(type, connection.registry()).deserializer();
    }

    /**
     * Reads and adds up.
     *
     * @param patience how long to wait while nothing arrives
     * @throws LedgerException if nothing arrived for so long before the end was reached
     */
    public Account read(Duration patience) {
        Reading reading = new Reading();
        scan(List.of(topics.rollouts(), topics.scores()), patience, reading);
        scan(List.of(topics.outcomes(), topics.deadLetters(), topics.batches(), topics.trainingLog()), patience, reading);
        return reading.account();
    }

    private void scan(List<String> names, Duration patience, Reading reading) {
        Map<String, Object> properties = connection.with(Map.of(
            ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
            ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 5000,
            ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, (int) patience.toMillis()));
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String name : names) {
                for (PartitionInfo info : consumer.partitionsFor(name, patience)) {
                    partitions.add(new TopicPartition(name, info.partition()));
                }
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions, patience);
            Set<TopicPartition> open = new HashSet<>(partitions);
            long lastProgress = System.nanoTime();
            while (true) {
                open.removeIf(partition -> consumer.position(partition, patience) >= ends.get(partition));
                if (open.isEmpty()) {
                    return;
                }
                var records = consumer.poll(POLL);
                records.forEach(reading::take);
                if (!records.isEmpty()) {
                    lastProgress = System.nanoTime();
                } else if (System.nanoTime() - lastProgress > patience.toNanos()) {
                    throw new LedgerException("nothing arrived for " + patience.toSeconds() + " s while reading " + open
                        + "; is a transaction left open on it, or the broker out of reach?");
                }
            }
        }
    }

    /** What one reading has gathered. */
    private final class Reading {
        private final Ledger ledger = new Ledger();
        private final Map<Integer, Long> rolloutEnds = new HashMap<>();
        private final Map<String, Integer> policyTokens = new HashMap<>();
        private final Set<String> scored = new HashSet<>();
        private final List<TrainingStep> trained = new ArrayList<>();
        private final Map<Long, LearnerBatch> assembled = new HashMap<>();
        private long generatedTokens;

        void take(ConsumerRecord<byte[], byte[]> record) {
            String topic = record.topic();
            try {
                if (topic.equals(topics.rollouts())) {
                    rollout(record);
                } else if (topic.equals(topics.scores())) {
                    scored.add(scores.deserialize(topic, record.value()).getRolloutId());
                } else if (topic.equals(topics.outcomes())) {
                    outcome(outcomes.deserialize(topic, record.value()));
                } else if (topic.equals(topics.deadLetters())) {
                    deadLetter(record);
                } else if (topic.equals(topics.batches())) {
                    LearnerBatch batch = batches.deserialize(topic, record.value());
                    if (owns(batch.getRunId(), batch.getEpoch())) {
                        assembled.put(batch.getBatchId(), batch);
                    }
                } else {
                    TrainingStep step = steps.deserialize(topic, record.value());
                    if (owns(step.getRunId(), step.getEpoch())) {
                        trained.add(step);
                        ledger.stepped(step.getBatchId());
                    }
                }
            } catch (MalformedRecordException notOurs) {
                // such a record is accounted for by its dead letter; only its place counts here
                if (topic.equals(topics.rollouts())) {
                    rolloutEnds.merge(record.partition(), record.offset(), Math::max);
                    ledger.rollout(record.partition(), record.offset(), "");
                }
            }
        }

        private boolean owns(String runId, int epoch) {
            return connection.run().owns(runId, epoch);
        }

        private void rollout(ConsumerRecord<byte[], byte[]> record) {
            Rollout rollout = rollouts.deserialize(record.topic(), record.value());
            rolloutEnds.merge(record.partition(), record.offset(), Math::max);
            if (rollout == null || !owns(rollout.getRunId(), rollout.getEpoch())) {
                ledger.rollout(record.partition(), record.offset(), "");
                return;
            }
            ledger.rollout(record.partition(), record.offset(), rollout.getRolloutId());
            int tokens = ones(rollout.getMask());
            generatedTokens += tokens;
            policyTokens.put(rollout.getRolloutId(), tokens);
        }

        private void outcome(Outcome outcome) {
            var source = outcome.getSource();
            if (source.getTopic().equals(topics.rollouts()) && seen(source.getPartition(), source.getOffset())) {
                ledger.dropped(source.getPartition(), source.getOffset(), outcome.getReason());
            }
        }

        private void deadLetter(ConsumerRecord<byte[], byte[]> record) {
            if (topics.rollouts().equals(DeadLetters.text(record.headers(), DeadLetters.SOURCE_TOPIC))) {
                int partition = Integer.parseInt(DeadLetters.text(record.headers(), DeadLetters.SOURCE_PARTITION));
                long offset = Long.parseLong(DeadLetters.text(record.headers(), DeadLetters.SOURCE_OFFSET));
                if (seen(partition, offset)) {
                    ledger.deadLettered(partition, offset);
                }
            }
        }

        private boolean seen(int partition, long offset) {
            return offset <= rolloutEnds.getOrDefault(partition, -1L);
        }

        Account account() {
            for (LearnerBatch batch : assembled.values()) {
                for (BatchEntry entry : batch.getEntries()) {
                    if (policyTokens.containsKey(entry.getRolloutId())) {
                        ledger.batched(batch.getBatchId(), entry.getRolloutId(), entry.getTrainedTokens() > 0);
                    }
                }
            }
            trained.sort(Comparator.comparingLong(TrainingStep::getBatchId));
            long scoredTokens = scored.stream().mapToLong(id -> policyTokens.getOrDefault(id, 0)).sum();
            long trainedTokens = trained.stream().mapToLong(TrainingStep::getTokensTrained).sum();
            return new Account(ledger.balance(), generatedTokens, scoredTokens, trainedTokens, trained);
        }
    }

    private static int ones(ByteBuffer mask) {
        int ones = 0;
        for (int i = mask.position(); i < mask.limit(); i++) {
            ones += mask.get(i) == 1 ? 1 : 0;
        }
        return ones;
    }
}
