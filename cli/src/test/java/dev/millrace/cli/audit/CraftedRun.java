package dev.millrace.cli.audit;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.topology.Extremes;
import dev.millrace.topology.Extremes.Extreme;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A run whose generator, scorer and learner are the test: it writes their records by hand. */
final class CraftedRun implements AutoCloseable {
    static final String RUN = "crafted";
    static final String PREFIX = "millrace.crafted.";
    static final int GROUP_SIZE = 2;
    private static final String WEIGHTS = "00";

    private final RunLog log;
    private final int epoch;
    private final KafkaProducer<byte[], byte[]> producer;

    CraftedRun(String bootstrapServers, int epoch) {
        this.epoch = epoch;
        RunLog first = RunLog.open(
                Map.of("bootstrap.servers", bootstrapServers),
                new RunTopics(PREFIX),
                new RunIdentity(RUN, 0, "policy"),
                TopicsConfig.defaults(),
                "",
                Clock.systemUTC());
        this.log = epoch == 0 || first.connection().run().epoch() == epoch
                ? first
                : first.beginEpoch(
                        new EpochParent(0, 0L, WEIGHTS, "by hand"), TopicsConfig.defaults(), Clock.systemUTC());
        this.producer = new KafkaProducer<>(
                connection().producer(Map.of("acks", "all", "linger.ms", 0)),
                new ByteArraySerializer(),
                new ByteArraySerializer());
    }

    LogConnection connection() {
        return log.connection();
    }

    RunTopics topics() {
        return connection().topics();
    }

    <T extends SpecificRecord> byte[] encode(String topic, Class<T> type, T record) {
        return AvroSerde.of(type, connection().registry()).serializer().serialize(topic, record);
    }

    RecordMetadata send(String topic, String key, byte[] value) throws Exception {
        return producer.send(new ProducerRecord<>(topic, key.getBytes(StandardCharsets.UTF_8), value))
                .get();
    }

    void prompt(long ordinal) throws Exception {
        PromptRequest prompt = new PromptRequest(
                RUN,
                epoch,
                epoch + "-" + ordinal,
                ordinal,
                "inc",
                "",
                PackedInts.of(1, 2),
                GROUP_SIZE,
                new SamplingParameters(1.0, 0, 1.0, 8, 42L, false, 0, 0.0, false),
                "vocabulary",
                0L,
                System.currentTimeMillis(),
                null,
                null);
        send(topics().prompts(), prompt.getGroupId(), encode(topics().prompts(), PromptRequest.class, prompt));
    }

    Rollout rollout(long ordinal, int sample, double reward) {
        long now = System.currentTimeMillis();
        String group = epoch + "-" + ordinal;
        return Rollout.newBuilder()
                .setRunId(RUN)
                .setEpoch(epoch)
                .setRolloutId(group + "/" + sample)
                .setGroupId(group)
                .setOrdinal(ordinal)
                .setSampleIndex(sample)
                .setGroupSize(GROUP_SIZE)
                .setGeneratorId("by-hand")
                .setEnvironment("inc")
                .setTokenizerHash("vocabulary")
                .setPromptTokens(PackedInts.of(1, 2))
                .setResponseTokens(PackedInts.of(3, 4, 5))
                .setMask(PackedMask.of((byte) 1, (byte) 1, (byte) 1))
                .setBehaviorLogProbs(logProbs())
                .setLogProbDistribution(LogProbDistribution.TEMPERED)
                .setTemperedLogProbs(null)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 42L, false, 0, 0.0, false))
                .setTurns(List.of(new Turn(Speaker.POLICY, 0, 3, null)))
                .setVersionSpans(List.of(new VersionSpan(0L, 0, 3)))
                .setReward(reward)
                .setRewardComponents(Map.of())
                .setFinishReason(FinishReason.STOP)
                .setAdmittedVersion(0)
                .setStartedAtMs(now - 5)
                .setFinishedAtMs(now)
                .build();
    }

    private static ByteBuffer logProbs() {
        return PackedFloats.of(-0.5f, -1f, -1.5f);
    }

    RecordMetadata send(Rollout rollout) throws Exception {
        return send(topics().rollouts(), rollout.getGroupId(), encode(topics().rollouts(), Rollout.class, rollout));
    }

    void scoreAt(Rollout rollout, int partition, long offset) throws Exception {
        Score score = new Score(
                RUN,
                epoch,
                rollout.getRolloutId(),
                rollout.getGroupId(),
                "by-hand",
                new LogCoordinates(topics().rollouts(), partition, offset),
                List.of(
                        new LogProbVector(
                                PolicyRole.OLD, rollout.getVersionSpans(), logProbs(), null, null, null, null),
                        new LogProbVector(
                                PolicyRole.PROXIMAL,
                                List.of(new VersionSpan(0L, 0, 3)),
                                logProbs(),
                                null,
                                null,
                                null,
                                null)),
                null,
                System.currentTimeMillis(),
                null);
        send(topics().scores(), rollout.getGroupId(), encode(topics().scores(), Score.class, score));
    }

    void sendScored(Rollout rollout) throws Exception {
        RecordMetadata at = send(rollout);
        scoreAt(rollout, at.partition(), at.offset());
    }

    void version(long version) throws Exception {
        boolean isFirstOfEpoch = epoch > 0 && version == 0;
        PolicyVersion manifest = PolicyVersion.newBuilder()
                .setRunId(RUN)
                .setEpoch(epoch)
                .setPolicyId("policy")
                .setVersion(version)
                .setParentVersion(isFirstOfEpoch ? version : version - 1)
                .setParentEpoch(isFirstOfEpoch ? epoch - 1 : null)
                .setBatchId(version - 1)
                .setShape("{}")
                .setTokenizerHash("vocabulary")
                .setWeights(TensorLocation.newBuilder()
                        .setTopic(topics().weights())
                        .setPartition(0)
                        .setFirstOffset(0)
                        .setLastOffset(0)
                        .setTensors(List.of())
                        .setSha256(WEIGHTS)
                        .build())
                .setOptimizerSteps(version)
                .setRolloutsConsumed(0)
                .setTokensTrained(0)
                .setPublishedAtMs(System.currentTimeMillis())
                .build();
        send(
                topics().policyVersions(),
                VersionKey.of(manifest).toString(),
                encode(topics().policyVersions(), PolicyVersion.class, manifest));
    }

    void deleteVersion(long version) throws Exception {
        producer.send(new ProducerRecord<>(
                        topics().policyVersions(),
                        VersionKey.of(connection().run(), version).bytes(),
                        null))
                .get();
    }

    void step(long batchId, int rollouts) throws Exception {
        TrainingStep step = new TrainingStep(
                RUN,
                epoch,
                "policy",
                batchId,
                batchId + 1,
                "00",
                rollouts,
                0,
                3L * rollouts,
                0.5,
                0.0,
                0L,
                1.0,
                1e-3,
                Map.of(),
                System.currentTimeMillis(),
                System.currentTimeMillis(),
                null,
                0.0,
                0.0,
                1.0,
                0.0,
                0.0,
                3L * rollouts,
                false,
                (batchId + 1) * rollouts);
        send(topics().trainingLog(), "policy", encode(topics().trainingLog(), TrainingStep.class, step));
    }

    private List<ConsumerRecord<byte[], byte[]>> records(String topic) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (TopicScan scan = connection().scan(Duration.ofMinutes(5))) {
            scan.read(topic, scan.cut(List.of(topic)), records::add);
        }
        return records;
    }

    private <T extends SpecificRecord> T last(String topic, Class<T> type) {
        List<ConsumerRecord<byte[], byte[]>> records = records(topic);
        return AvroSerde.of(type, connection().registry())
                .deserializer()
                .deserialize(topic, records.get(records.size() - 1).value());
    }

    /** An outcome, a score and a batch that name a partition of the rollouts topic that is not there. */
    void sendStrays() throws Exception {
        LogCoordinates nowhere = new LogCoordinates(topics().rollouts(), 99, 0L);
        Outcome outcome = Outcome.newBuilder(last(topics().outcomes(), Outcome.class))
                .setSource(nowhere)
                .build();
        send(topics().outcomes(), outcome.getGroupId(), encode(topics().outcomes(), Outcome.class, outcome));
        Score score = Score.newBuilder(last(topics().scores(), Score.class))
                .setRolloutSource(nowhere)
                .build();
        send(topics().scores(), score.getGroupId(), encode(topics().scores(), Score.class, score));
        LearnerBatch batch = last(topics().batches(), LearnerBatch.class);
        LearnerBatch stray = LearnerBatch.newBuilder(batch)
                .setBatchId(batch.getBatchId() + 1)
                .setEntries(batch.getEntries().stream()
                        .map(entry -> BatchEntry.newBuilder(entry)
                                .setRolloutPartition(99)
                                .setPartition(99)
                                .setOffset(Long.MIN_VALUE)
                                .build())
                        .toList())
                .build();
        send(topics().batches(), "policy", encode(topics().batches(), LearnerBatch.class, stray));
    }

    /** Everything that is on some topics once more, in a transaction that is given up. */
    void giveUp(List<String> ofTopics) throws Exception {
        try (KafkaProducer<byte[], byte[]> other = new KafkaProducer<>(
                connection().producer(Map.of("transactional.id", topics().prefix() + "given-up")),
                new ByteArraySerializer(),
                new ByteArraySerializer())) {
            other.initTransactions();
            other.beginTransaction();
            for (String topic : ofTopics) {
                for (ConsumerRecord<byte[], byte[]> record : records(topic)) {
                    other.send(new ProducerRecord<>(
                            topic, record.partition(), record.key(), record.value(), record.headers()));
                }
            }
            other.flush();
            other.abortTransaction();
        }
    }

    /** Copies of the last batch and step under ids of their own, refused as the roles refuse them. */
    void sendRefused() throws Exception {
        LearnerBatch batch = last(topics().batches(), LearnerBatch.class);
        LearnerBatch copy = LearnerBatch.newBuilder(batch)
                .setBatchId(batch.getBatchId() + 50)
                .build();
        refuse(send(topics().batches(), "policy", encode(topics().batches(), LearnerBatch.class, copy)));
        TrainingStep step = last(topics().trainingLog(), TrainingStep.class);
        TrainingStep far = TrainingStep.newBuilder(step)
                .setBatchId(step.getBatchId() + 1_000_000)
                .setVersion(1_000_000)
                .build();
        refuse(send(topics().trainingLog(), "policy", encode(topics().trainingLog(), TrainingStep.class, far)));
    }

    private void refuse(RecordMetadata at) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> records = records(at.topic());
        ConsumerRecord<byte[], byte[]> refused = records.get(records.size() - 1);
        producer.send(DeadLetters.of(
                        refused,
                        Refusal.of(RefusalReason.IDENTITY, "batch_id", "a copy"),
                        connection().run(),
                        topics().deadLetters()))
                .get();
    }

    /** Writes the last record of a topic once more with each of its numbers at each extreme; says how many there were. */
    <T extends SpecificRecord> int extremes(String topic, Class<T> type) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (TopicScan scan = connection().scan(Duration.ofMinutes(5))) {
            scan.read(topic, scan.cut(List.of(topic)), records::add);
        }
        records.removeIf(record -> record.value() == null);
        for (int last = records.size() - 1; last >= 0; last--) {
            try {
                T record = AvroSerde.of(type, connection().registry())
                        .deserializer()
                        .deserialize(topic, records.get(last).value());
                List<Extreme<T>> extremes = Extremes.of(record);
                for (Extreme<T> extreme : extremes) {
                    producer.send(new ProducerRecord<>(
                            topic, records.get(last).key(), encode(topic, type, extreme.record())));
                }
                producer.flush();
                return extremes.size();
            } catch (MalformedRecordException e) {
                // garbage, which the log has too
            }
        }
        return 0;
    }

    /** Writes every record of a topic once more, unchanged; returns how many there were. */
    int copyAll(String topic) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> records = records(topic);
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(
                            topic, record.partition(), record.key(), record.value(), record.headers()))
                    .get();
        }
        return records.size();
    }

    @Override
    public void close() {
        producer.close();
        log.close();
    }
}
