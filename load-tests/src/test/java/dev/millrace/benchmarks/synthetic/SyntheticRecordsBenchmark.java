package dev.millrace.benchmarks.synthetic;

import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroRecordSerializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.workloads.topology.RolloutShape;
import dev.millrace.workloads.topology.SyntheticRun.SyntheticRecords;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** What the load generator itself costs for one rollout: drawing it, making the record, encoding it. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
public class SyntheticRecordsBenchmark {
    /** Tokens of a response. */
    @Param({"64", "512", "4096"})
    public int tokens;

    private SyntheticRecords records;
    private AvroRecordSerializer<Rollout> serializer;
    private String topic;
    private long index;

    /** Records of one length. */
    @Setup
    public void prepare() {
        RunTopics topics = new RunTopics("load.");
        records = new SyntheticRecords(
                new RunIdentity("load", 0, "policy"),
                topics,
                RolloutShape.defaults().withResponseTokens(tokens),
                1);
        serializer = AvroSerde.of(Rollout.class, new InMemorySchemaRegistry()).serializer();
        topic = topics.rollouts();
    }

    /** One rollout as the bytes that go to the producer. */
    @Benchmark
    public byte @Nullable [] rollout() {
        return serializer.serialize(topic, records.rollout(records.draw(index++), 5, 1000));
    }
}
