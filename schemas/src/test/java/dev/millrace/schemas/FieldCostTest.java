package dev.millrace.schemas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.specific.SpecificRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * What optional fields add to a record: the figures of {@code docs/inside/log.md}. The rollout has 1,000 response
 * tokens in four turns, 800 of them sampled by the policy.
 */
class FieldCostTest {
    private static final int TOKENS = 1000;
    private static final int TRAINED = 800;
    private static final int TURNS = 4;
    private static final int HEADER = 5;
    private static final long NOW_MS = 1_767_225_600_123L;
    private static final InMemorySchemaRegistry REGISTRY = new InMemorySchemaRegistry();

    @Test
    void shouldTakeNineBytesPerTokenAndAByteForEachFieldThatNobodyFillsButEightForMinP() throws IOException {
        Rollout bare = rollout().build();

        assertThat(size(bare)).isEqualTo(9 * TOKENS + 160);
        assertThat(size(bare) - sizeInVersionOne(bare)).isEqualTo(10 + TURNS + Double.BYTES);
        assertThat(size(score(null)) - sizeInVersionOne(score(null))).isEqualTo(3);
    }

    static Stream<Arguments> filled() {
        return Stream.of(
                rollout("error", r -> r.setError("the tool server answered 503 three times"), 41),
                rollout(
                        "sampler, the agent",
                        r -> r.setSampler(new Sampler(null, null, new Agent("solver", true), null)),
                        12),
                rollout("sampler, the engine", r -> r.setSampler(new Sampler(null, null, null, engine())), 30),
                rollout("task", r -> r.setTask(new TaskReference("ab".repeat(32), Map.of("source", "gsm8k"))), 81),
                rollout(
                        "credit, per turn",
                        r -> r.setCredit(new Credit(floats(TURNS), null, null, null, null, null)),
                        23),
                rollout(
                        "credit, per token",
                        r -> r.setCredit(new Credit(null, floats(TOKENS), null, null, null, null)),
                        4008),
                rollout("top_log_probs, k = 20", r -> r.setSamplingTrace(trace(top(20), null, null)), 131_213),
                rollout("kept_tokens, 50 each", r -> r.setSamplingTrace(trace(null, kept(50), null)), 163_209),
                rollout("expert_routing", r -> r.setSamplingTrace(trace(null, null, routing())), 314),
                rollout("branch", r -> r.setBranch(new Branch("0-17/2", 512, BranchReason.COMPACTION, 0.5)), 19),
                rollout("images", r -> r.setImages(List.of(new ImageReference(blob(), 12, 256))), 160),
                rollout("turns.details", r -> r.setTurns(turns(details())), 4 * 40));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource
    void filled(String field, Rollout with, int bytes) {
        assertThat(size(with) - size(rollout().build())).isEqualTo(bytes);
    }

    @Test
    void shouldCostAsMuchInAScoreForTheLikeliestTokens() {
        assertThat(size(score(top(20))) - size(score(null))).isEqualTo(131_209);
    }

    private static Arguments rollout(String field, Consumer<Rollout.Builder> fill, int bytes) {
        Rollout.Builder builder = rollout();
        fill.accept(builder);
        return arguments(field, builder.build(), bytes);
    }

    private static Rollout.Builder rollout() {
        byte[] mask = new byte[TOKENS];
        Arrays.fill(mask, 0, TRAINED, (byte) 1);
        return Rollout.newBuilder()
                .setRunId("run-1")
                .setEpoch(0)
                .setRolloutId("0-17/3")
                .setGroupId("0-17")
                .setOrdinal(17)
                .setSampleIndex(3)
                .setGroupSize(8)
                .setGeneratorId("generator-0")
                .setEnvironment("inc")
                .setTokenizerHash("sha256:00ff")
                .setPromptTokens(PackedInts.of(1))
                .setResponseTokens(ints(TOKENS))
                .setMask(PackedMask.of(mask))
                .setBehaviorLogProbs(floats(TOKENS))
                .setLogProbDistribution(LogProbDistribution.TEMPERED)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 1024, 42L, false, 0, 0.0, false))
                .setTurns(turns(null))
                .setVersionSpans(List.of(new VersionSpan(7L, 0, TOKENS)))
                .setReward(0.5)
                .setFinishReason(FinishReason.STOP)
                .setAdmittedVersion(5)
                .setStartedAtMs(NOW_MS)
                .setFinishedAtMs(NOW_MS + 250);
    }

    private static Score score(TopLogProbs top) {
        return Score.newBuilder()
                .setRunId("run-1")
                .setEpoch(0)
                .setRolloutId("0-17/3")
                .setGroupId("0-17")
                .setScorerId("scorer-0")
                .setRolloutSource(new LogCoordinates("millrace.rollouts", 3, 1L << 20))
                .setVectors(List.of(LogProbVector.newBuilder()
                        .setPolicy(PolicyRole.OLD)
                        .setVersionSpans(List.of(new VersionSpan(7L, 0, TOKENS)))
                        .setLogProbs(floats(TOKENS))
                        .setTopLogProbs(top)
                        .build()))
                .setScoredAtMs(NOW_MS)
                .build();
    }

    private static List<Turn> turns(TurnDetails details) {
        return IntStream.range(0, TURNS)
                .mapToObj(i -> new Turn(Speaker.POLICY, i * TOKENS / TURNS, (i + 1) * TOKENS / TURNS, details))
                .toList();
    }

    private static TurnDetails details() {
        return new TurnDetails(
                FinishReason.TOOL_CALLS,
                "search",
                null,
                NOW_MS,
                NOW_MS + 40,
                NOW_MS + 90,
                new TokenUsage(1200, 250, 1100));
    }

    private static EngineIdentity engine() {
        return new EngineIdentity("vllm", "0.27.1", "bfloat16", "fp8");
    }

    private static TopLogProbs top(int k) {
        return new TopLogProbs(k, ints(TRAINED * k), floats(TRAINED * k), floats(TRAINED));
    }

    private static KeptSupport kept(int each) {
        return new KeptSupport(ints(TRAINED), ints(TRAINED * each));
    }

    private static ExpertRouting routing() {
        return new ExpertRouting(blob(), blob());
    }

    private static SamplingTrace trace(TopLogProbs top, KeptSupport kept, ExpertRouting routing) {
        return new SamplingTrace(top, kept, routing, null);
    }

    private static BlobReference blob() {
        return new BlobReference(
                "ab".repeat(32),
                "s3://bucket/blobs/" + "ab".repeat(16),
                "application/octet-stream",
                384_000L,
                "U8",
                List.of(1000L, 48L, 8L));
    }

    private static ByteBuffer ints(int count) {
        return PackedInts.of(new int[count]);
    }

    private static ByteBuffer floats(int count) {
        return PackedFloats.of(new float[count]);
    }

    @SuppressWarnings("unchecked") // the serde of the record's own class
    private static byte[] bytes(SpecificRecord record) {
        AvroSerde<SpecificRecord> serde = (AvroSerde<SpecificRecord>) AvroSerde.of(record.getClass(), REGISTRY);
        return serde.serializer().serialize("x", record);
    }

    private static int size(SpecificRecord record) {
        return bytes(record).length;
    }

    /** What the same record took before there were these fields. */
    private static int sizeInVersionOne(SpecificRecord record) throws IOException {
        Schema schema = record.getSchema();
        Schema one = SchemaHistory.of(schema.getName()).get(0).schema();
        byte[] bytes = bytes(record);
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(bytes, HEADER, bytes.length - HEADER, null);
        GenericRecord old = new GenericDatumReader<GenericRecord>(schema, one).read(null, decoder);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<GenericRecord>(one).write(old, encoder);
        encoder.flush();
        return HEADER + out.size();
    }
}
