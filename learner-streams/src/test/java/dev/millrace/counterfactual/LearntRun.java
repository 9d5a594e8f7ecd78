package dev.millrace.counterfactual;

import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.control.ControlState;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepReport;
import dev.millrace.policy.optimizer.AdamW;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.MemoryRun;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.LogConnection;
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
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A run of four batches of six synthetic rollouts, learnt from and published as a learner does it, held in memory. */
final class LearntRun {
    static final int STEPS = 4;
    private static final int MEMBERS = 6;
    private static final RunTopics TOPICS = new RunTopics("test.");

    final MemoryRun run;
    final List<String> hashes = new ArrayList<>();
    private final SchemaRegistry registry = new InMemorySchemaRegistry();

    LearntRun(Course course) {
        run = new MemoryRun(SyntheticRollouts.RUN, TOPICS, registry);
        List<TrainingBatch> batches = batches();
        LogConnection connection =
            new LogConnection(Map.of("bootstrap.servers", "nowhere:1"), TOPICS, SyntheticRollouts.RUN, registry);
        MockProducer<byte[], byte[]> producer =
            new MockProducer<>(cluster(), true, null, new ByteArraySerializer(), new ByteArraySerializer());
        WeightsConfig config = WeightsConfig.defaults();
        VersionWriter writer = new VersionWriter(connection, producer, config);
        try (BatchOptimizer optimizer =
                 new BatchOptimizer(Engine.cpu(), SyntheticRollouts.SHAPE, course.step(), course.corrections())) {
            Weights weights = Weights.random(SyntheticRollouts.SHAPE, SyntheticRollouts.SEED);
            AdamW adamW = optimizer.newOptimizer();
            ControlState controls = ControlState.initial();
            publish(writer, new VersionFacts(0, -1, SyntheticRollouts.TOKENIZER_HASH, 0, 0, 0), weights, adamW);
            for (int b = 0; b < STEPS; b++) {
                StepReport report = optimizer.train(batches.get(b), b, controls, weights, adamW);
                controls = report.controls();
                publish(writer, new VersionFacts(b + 1, b, SyntheticRollouts.TOKENIZER_HASH, 0, 0, 0, controls.values()), weights, adamW);
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
        PolicyVersion manifest = writer.write(facts, weights, adamW.state());
        writer.continueFrom(manifest, weights);
        hashes.add(manifest.getWeights().getSha256());
    }

    private List<TrainingBatch> batches() {
        List<TrainingBatch> batches = new ArrayList<>();
        try (SyntheticRollouts rollouts = new SyntheticRollouts(3)) {
            for (int b = 0; b < STEPS; b++) {
                List<Trajectory> trajectories = new ArrayList<>();
                List<BatchEntry> entries = new ArrayList<>();
                for (int i = 0; i < MEMBERS; i++) {
                    long offset = (long) b * MEMBERS + i;
                    Trajectory trajectory = rollouts.next();
                    put(TOPICS.trajectories(), offset, trajectory, Trajectory.class);
                    trajectories.add(trajectory);
                    entries.add(SyntheticRollouts.entry(trajectory, 0, offset));
                }
                LearnerBatch batch = SyntheticRollouts.batch(b, entries);
                put(TOPICS.batches(), b, batch, LearnerBatch.class);
                batches.add(TrainingBatch.of(batch, trajectories));
            }
        }
        return batches;
    }

    private <T extends SpecificRecord> void put(String topic, long offset, T record, Class<T> type) {
        run.put(new ConsumerRecord<>(topic, 0, offset, new byte[0], AvroSerde.of(type, registry).serializer().serialize(topic, record)));
    }

    private static Cluster cluster() {
        Node node = new Node(0, "nowhere", 1);
        List<PartitionInfo> partitions = TOPICS.all().stream()
            .map(topic -> new PartitionInfo(topic, 0, node, new Node[] {node}, new Node[] {node})).toList();
        return new Cluster("test", List.of(node), partitions, Set.of(), Set.of());
    }
}
