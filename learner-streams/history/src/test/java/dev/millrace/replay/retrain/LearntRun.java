package dev.millrace.replay.retrain;

import dev.millrace.corrections.stage.ControlState;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepReport;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.MemoryRun;
import dev.millrace.replay.retrain.StretchScoring.Stretch;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongPredicate;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A run of four batches of six synthetic rollouts, trained on and published like a learner, in memory. A rollout is
 * two versions behind the step on it, its first token three, as far as there are such versions.
 */
final class LearntRun {
    static final int STEPS = 4;
    static final int MEMBERS = 6;
    private static final int LAG = 2;
    private static final RunTopics TOPICS = new RunTopics("test.");

    final MemoryRun run;
    final List<String> hashes = new ArrayList<>();
    final List<Trajectory> trajectories = new ArrayList<>();
    private final SchemaRegistry registry = new InMemorySchemaRegistry();
    private final LongPredicate checkpoints;

    /** Each version with the optimizer's state. */
    LearntRun(Variant variant) {
        this(variant, version -> true);
    }

    /** @param checkpoints the versions with the optimizer's state */
    LearntRun(Variant variant, LongPredicate checkpoints) {
        this.checkpoints = checkpoints;
        run = new MemoryRun(SyntheticRollouts.RUN, TOPICS, registry);
        prompts();
        LogConnection connection =
                new LogConnection(Map.of("bootstrap.servers", "nowhere:1"), TOPICS, SyntheticRollouts.RUN, registry);
        MockProducer<byte[], byte[]> producer =
                new MockProducer<>(cluster(), true, null, new ByteArraySerializer(), new ByteArraySerializer());
        WeightsConfig config = WeightsConfig.defaults();
        VersionWriter writer = new VersionWriter(connection, producer, config);
        try (SyntheticRollouts rollouts = new SyntheticRollouts(3);
                StretchScoring scoring = new StretchScoring(Engine.cpu(), SyntheticRollouts.SHAPE, 1024);
                BatchOptimizer optimizer = new BatchOptimizer(
                        Engine.cpu(), SyntheticRollouts.SHAPE, variant.step(), variant.algorithm())) {
            Weights weights = Weights.random(SyntheticRollouts.SHAPE, SyntheticRollouts.SEED);
            AdamW adamW = optimizer.newOptimizer();
            ControlState controls = ControlState.initial();
            publish(writer, new VersionFacts(0, -1, SyntheticRollouts.TOKENIZER_HASH, 0, 0, 0), weights, adamW);
            VersionFacts.Progress none = new VersionFacts.Progress(0, 0);
            List<Weights> made = new ArrayList<>();
            for (int b = 0; b < STEPS; b++) {
                made.add(weights.copy());
                StepReport report = optimizer.train(batch(b, rollouts, scoring, made), b, controls, weights, adamW);
                controls = report.controls();
                publish(
                        writer,
                        new VersionFacts(b + 1, b, SyntheticRollouts.TOKENIZER_HASH, none, 0, controls.values(), null),
                        weights,
                        adamW);
            }
        }
        Map<String, Long> next = new HashMap<>();
        for (ProducerRecord<byte[], byte[]> sent : producer.history()) {
            long offset = next.merge(sent.topic(), 1L, Long::sum) - 1;
            run.put(new ConsumerRecord<>(sent.topic(), 0, offset, sent.key(), sent.value()));
        }
        producer.close();
    }

    private void publish(VersionWriter writer, VersionFacts facts, Weights weights, AdamW adamW) {
        PolicyVersion manifest = checkpoints.test(facts.version())
                ? writer.write(facts, weights, adamW.state())
                : writer.writeWithoutState(facts, weights, adamW.state().steps());
        writer.continueFrom(manifest, weights);
        hashes.add(manifest.getWeights().getSha256());
    }

    private TrainingBatch batch(int b, SyntheticRollouts rollouts, StretchScoring scoring, List<Weights> made) {
        List<Trajectory> members = new ArrayList<>();
        List<BatchEntry> entries = new ArrayList<>();
        for (int i = 0; i < MEMBERS; i++) {
            long offset = (long) b * MEMBERS + i;
            Trajectory trajectory = sampledBy(Math.max(0, b - LAG), rollouts.next(), scoring, made);
            put(TOPICS.trajectories(), offset, trajectory, Trajectory.class);
            members.add(trajectory);
            entries.add(BatchEntry.newBuilder(SyntheticRollouts.entry(trajectory, 0, offset))
                    .setOldestVersion(trajectory.getVersionSpans().get(0).getVersion())
                    .build());
        }
        trajectories.addAll(members);
        LearnerBatch batch = LearnerBatch.newBuilder(SyntheticRollouts.batch(b, entries))
                .setAssembledVersion(Math.max(0, b - 1))
                .build();
        put(TOPICS.batches(), b, batch, LearnerBatch.class);
        return TrainingBatch.of(batch, members);
    }

    /** The same tokens, as if this version had sampled all but the first of them. */
    private static Trajectory sampledBy(long version, Trajectory like, StretchScoring scoring, List<Weights> made) {
        int tokens = PackedMask.length(like.getMask());
        List<VersionSpan> spans = version == 0
                ? List.of(new VersionSpan(0L, 0, tokens))
                : List.of(new VersionSpan(version - 1, 0, 1), new VersionSpan(version, 1, tokens));
        float[] old = new float[tokens];
        float[] proximal = new float[tokens];
        for (VersionSpan span : spans) {
            scoring.score(
                    made.get((int) span.getVersion()),
                    List.of(like),
                    List.of(new Stretch(0, span.getStart(), span.getEnd(), old, 0)));
        }
        scoring.score(made.get((int) version), List.of(like), List.of(new Stretch(0, 0, tokens, proximal, 0)));
        float[] behavior = new float[tokens];
        for (int t = 0; t < tokens; t++) {
            boolean isTrained = PackedMask.get(like.getMask(), t) == 1;
            behavior[t] = isTrained
                    ? old[t]
                            + PackedFloats.get(like.getBehaviorLogProbs(), t)
                            - PackedFloats.get(like.getOldLogProbs(), t)
                    : 0f;
            old[t] = isTrained ? old[t] : 0f;
            proximal[t] = isTrained ? proximal[t] : 0f;
        }
        return Trajectory.newBuilder(like)
                .setVersionSpans(spans)
                .setBehaviorLogProbs(PackedFloats.of(behavior))
                .setOldLogProbs(PackedFloats.of(old))
                .setProximalLogProbs(PackedFloats.of(proximal))
                .setProximalVersion(version)
                .build();
    }

    private void prompts() {
        for (int g = 0; g < STEPS * MEMBERS / SyntheticRollouts.GROUP_SIZE; g++) {
            put(
                    TOPICS.prompts(),
                    g,
                    PromptRequest.newBuilder()
                            .setRunId(SyntheticRollouts.RUN.runId())
                            .setEpoch(SyntheticRollouts.RUN.epoch())
                            .setGroupId("g" + g)
                            .setOrdinal(g)
                            .setEnvironment("synthetic")
                            .setEnvironmentState("")
                            .setPromptTokens(PackedInts.of(1, 2))
                            .setSamples(SyntheticRollouts.GROUP_SIZE)
                            .setSampling(new SamplingParameters(1.0, 0, 1.0, 6, 40L, false, 0, 0.0, false))
                            .setTokenizerHash(SyntheticRollouts.TOKENIZER_HASH)
                            .setAdmittedVersion(0)
                            .setReleasedAtMs(0)
                            .build(),
                    PromptRequest.class);
        }
    }

    /**
     * Puts another trajectory in a place.
     *
     * @return the record that was there
     */
    ConsumerRecord<byte[], byte[]> with(Trajectory other, long offset) {
        ConsumerRecord<byte[], byte[]> before = run.of(TOPICS.trajectories()).get(offset);
        put(TOPICS.trajectories(), offset, other, Trajectory.class);
        return before;
    }

    private <T extends SpecificRecord> void put(String topic, long offset, T record, Class<T> type) {
        run.put(new ConsumerRecord<>(
                topic,
                0,
                offset,
                new byte[0],
                AvroSerde.of(type, registry).serializer().serialize(topic, record)));
    }

    private static Cluster cluster() {
        Node node = new Node(0, "nowhere", 1);
        List<PartitionInfo> partitions = TOPICS.all().stream()
                .map(topic -> new PartitionInfo(topic, 0, node, new Node[] {node}, new Node[] {node}))
                .toList();
        return new Cluster("test", List.of(node), partitions, Set.of(), Set.of());
    }
}
