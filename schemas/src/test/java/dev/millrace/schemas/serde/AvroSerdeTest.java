package dev.millrace.schemas.serde;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.schemas.Examples;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.WeightChunk;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.errors.SerializationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class AvroSerdeTest {
    private static final String TOPIC = "millrace.rollouts";

    private final InMemorySchemaRegistry registry = new InMemorySchemaRegistry();

    static Stream<SpecificRecord> examples() {
        return Examples.all().stream();
    }

    @ParameterizedTest
    @MethodSource("examples")
    void shouldGiveBackEveryRecordAsItWas(SpecificRecord example) {
        AvroSerde<SpecificRecord> serde = serdeOf(example);

        SpecificRecord back =
                serde.deserializer().deserialize(TOPIC, serde.serializer().serialize(TOPIC, example));

        assertThat(back).isEqualTo(example).isNotSameAs(example);
    }

    @Test
    void shouldWriteTheHeaderOfTheConfluentWireFormat() {
        AvroSerde<Serving> serde = AvroSerde.of(Serving.class, registry);
        registry.idOf("another-value", Rollout.getClassSchema());

        byte[] bytes = serde.serializer().serialize("serving", Examples.serving());

        assertThat(bytes).startsWith(0, 0, 0, 0, 2);
        assertThat(registry.byId(2)).isEqualTo(Serving.getClassSchema());
    }

    @Test
    void shouldKeepNullAsATombstone() {
        AvroSerde<Serving> serde = AvroSerde.of(Serving.class, registry);

        assertThat(serde.serializer().serialize(TOPIC, null)).isNull();
        assertThat(serde.deserializer().deserialize(TOPIC, (byte[]) null)).isNull();
    }

    @Test
    void shouldNotMoveTheBuffersItWritesAlsoDirectOnesAndLargeOnes() {
        AvroSerde<WeightChunk> serde = AvroSerde.of(WeightChunk.class, registry);
        ByteBuffer data = ByteBuffer.allocateDirect(5 << 20)
                .put(5_000_000, (byte) 3)
                .position(1_000)
                .asReadOnlyBuffer();
        WeightChunk chunk = new WeightChunk("run-1", 0, "default", 1L, "w", 0, 0L, data);

        WeightChunk back =
                serde.deserializer().deserialize(TOPIC, serde.serializer().serialize(TOPIC, chunk));

        assertThat(data.position()).isEqualTo(1_000);
        assertThat(back.getData()).isEqualTo(data);
    }

    @Test
    void shouldReadVectorsInPlaceWithoutCopyingOrBoxing() {
        AvroSerde<Rollout> serde = AvroSerde.of(Rollout.class, registry);
        Rollout longRollout = withResponseTokens(200_000);
        byte[] bytes = serde.serializer().serialize(TOPIC, longRollout);
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        double sum = 0;
        long allocated = Long.MAX_VALUE;

        int round = 0;
        while (round < 200 && allocated >= 20_000) { // until the code is compiled, each element costs an object
            round++;
            long before = threads.getCurrentThreadAllocatedBytes();
            Rollout back = serde.deserializer().deserialize(TOPIC, bytes);
            ByteBuffer logProbs = back.getBehaviorLogProbs();
            for (int i = 0; i < PackedFloats.length(logProbs); i++) {
                sum += PackedFloats.get(logProbs, i);
            }
            allocated = threads.getCurrentThreadAllocatedBytes() - before;
        }

        assertThat(sum).isEqualTo(round * 200_000 * -0.5);
        assertThat(bytes.length).isGreaterThan(1_600_000);
        assertThat(allocated)
                .as("bytes allocated for a record of %d", bytes.length)
                .isLessThan(20_000);
    }

    @Test
    void shouldWriteAndReadFromManyThreadsAtOnce() throws Exception {
        AvroSerde<Rollout> serde = AvroSerde.of(Rollout.class, registry);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        try {
            List<Callable<Rollout>> work = IntStream.range(0, 400)
                    .<Callable<Rollout>>mapToObj(i -> () -> serde.deserializer()
                            .deserialize(TOPIC, serde.serializer().serialize(TOPIC, withResponseTokens(i))))
                    .toList();
            List<Future<Rollout>> results = pool.invokeAll(work);
            for (int i = 0; i < results.size(); i++) {
                assertThat(results.get(i).get()).isEqualTo(withResponseTokens(i));
            }
        } finally {
            pool.shutdownNow();
        }
    }

    @Test
    void shouldReadARecordThatALaterVersionWroteWithMoreFieldsInAnotherOrder() throws IOException {
        Schema now = Serving.getClassSchema();
        List<Schema.Field> fields = new ArrayList<>();
        fields.add(new Schema.Field("device", SchemaBuilder.builder().stringType(), "Where it runs.", "cpu"));
        now.getFields().forEach(field -> fields.add(0, new Schema.Field(field, field.schema())));
        Schema later = Schema.createRecord(now.getName(), now.getDoc(), now.getNamespace(), false, fields);
        GenericRecord written = new GenericData.Record(later);
        Serving expected = Examples.serving();
        now.getFields().forEach(field -> written.put(field.name(), expected.get(field.pos())));
        written.put("role", new GenericData.EnumSymbol(later.getField("role").schema(), "GENERATOR"));
        written.put("device", "cuda:0");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(new byte[] {0, 0, 0, 0, (byte) registry.idOf("serving-value", later)});
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
        new GenericDatumWriter<GenericRecord>(later).write(written, encoder);

        assertThat(AvroSerde.of(Serving.class, registry).deserializer().deserialize("serving", out.toByteArray()))
                .isEqualTo(expected);
    }

    @Test
    void shouldNameTheFieldThatIsMissingWhenARecordCannotBeWritten() {
        AvroSerde<Serving> serde = AvroSerde.of(Serving.class, registry);
        Serving incomplete = Examples.serving();
        incomplete.put("server_id", null);

        assertThatThrownBy(() -> serde.serializer().serialize(TOPIC, incomplete))
                .isInstanceOf(SerializationException.class)
                .hasMessageContaining("a Serving for topic millrace.rollouts cannot be written")
                .hasMessageContaining("server_id");
    }

    private static Rollout withResponseTokens(int count) {
        float[] logProbs = new float[count];
        java.util.Arrays.fill(logProbs, -0.5f);
        Rollout rollout = Examples.rollout();
        rollout.put("response_tokens", ByteBuffer.wrap(new byte[4 * count]));
        rollout.put("behavior_log_probs", PackedFloats.of(logProbs));
        return rollout;
    }

    @SuppressWarnings("unchecked") // the serde of the example's own class
    private AvroSerde<SpecificRecord> serdeOf(SpecificRecord example) {
        return (AvroSerde<SpecificRecord>) AvroSerde.of(example.getClass(), registry);
    }
}
