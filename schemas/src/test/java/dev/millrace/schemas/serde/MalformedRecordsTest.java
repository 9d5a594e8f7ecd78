package dev.millrace.schemas.serde;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.millrace.schemas.Examples;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.serde.MalformedRecordException.Flaw;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.specific.SpecificRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class MalformedRecordsTest {
    private static final String TOPIC = "millrace.rollouts";

    private final InMemorySchemaRegistry registry = new InMemorySchemaRegistry();

    static Stream<SpecificRecord> examples() {
        return Examples.all().stream();
    }

    @ParameterizedTest
    @MethodSource("examples")
    void shouldRefuseEveryTruncationOfARecord(SpecificRecord example) {
        AvroSerde<SpecificRecord> serde = serdeOf(example);
        byte[] whole = serde.serializer().serialize(TOPIC, example);

        for (int length = 0; length < whole.length; length++) {
            byte[] cut = Arrays.copyOf(whole, length);
            assertThatThrownBy(() -> serde.deserializer().deserialize(TOPIC, cut))
                    .as("first %d bytes", length)
                    .isInstanceOfSatisfying(
                            MalformedRecordException.class,
                            e -> assertThat(e.flaw()).isIn(Flaw.EMPTY, Flaw.TRUNCATED));
        }
    }

    @ParameterizedTest
    @MethodSource("examples")
    void shouldThrowNothingElseForBytesChangedAtRandom(SpecificRecord example) {
        AvroSerde<SpecificRecord> serde = serdeOf(example);
        byte[] whole = serde.serializer().serialize(TOPIC, example);
        Random random = new Random(7);
        int refused = 0;

        for (int trial = 0; trial < 3_000; trial++) {
            byte[] changed = whole.clone();
            int changes = 1 + random.nextInt(4);
            for (int c = 0; c < changes; c++) {
                changed[5 + random.nextInt(changed.length - 5)] = (byte) random.nextInt(256);
            }
            Throwable thrown = catchThrowable(() -> serde.deserializer().deserialize(TOPIC, changed));
            if (thrown != null) {
                assertThat(thrown).as("trial %d", trial).isInstanceOf(MalformedRecordException.class);
                refused++;
            }
        }

        assertThat(refused).as("changed records that were refused").isPositive();
    }

    @ParameterizedTest
    @MethodSource("examples")
    void shouldThrowNothingElseForRandomBytes(SpecificRecord example) {
        AvroSerde<SpecificRecord> serde = serdeOf(example);
        byte[] header = Arrays.copyOf(serde.serializer().serialize(TOPIC, example), 5);
        Random random = new Random(11);

        for (int trial = 0; trial < 3_000; trial++) {
            byte[] bytes = new byte[random.nextInt(400)];
            random.nextBytes(bytes);
            if (trial % 2 == 0) {
                System.arraycopy(header, 0, bytes, 0, Math.min(5, bytes.length));
            }
            assertThatThrownBy(() -> serde.deserializer().deserialize(TOPIC, bytes))
                    .as("trial %d", trial)
                    .isInstanceOf(MalformedRecordException.class);
        }
    }

    @Test
    void shouldSayWhatIsWrongWithTheHeader() {
        AvroRecordDeserializer<Rollout> rollouts =
                AvroSerde.of(Rollout.class, registry).deserializer();

        assertRefused(
                rollouts,
                new byte[0],
                Flaw.EMPTY,
                "not a Rollout (topic millrace.rollouts): 0 bytes are fewer than the 5 of the header");
        assertRefused(
                rollouts,
                "{\"a\": 1}".getBytes(java.nio.charset.StandardCharsets.UTF_8),
                Flaw.WRONG_MAGIC_BYTE,
                "not a Rollout (topic millrace.rollouts): the first byte is 123 in place of 0");
        assertRefused(
                rollouts,
                new byte[] {0, 0, 0, 1, 0, 2, 2},
                Flaw.UNKNOWN_SCHEMA,
                "not a Rollout (topic millrace.rollouts): no schema has id 256");
        assertRefused(
                rollouts,
                new byte[] {0, -1, -1, -1, -1, 2, 2},
                Flaw.UNKNOWN_SCHEMA,
                "not a Rollout (topic millrace.rollouts): no schema has id -1");
    }

    @Test
    void shouldRefuseARecordOfAnotherKind() {
        byte[] score = AvroSerde.of(Score.class, registry).serializer().serialize(TOPIC, Examples.score());

        assertRefused(
                AvroSerde.of(Rollout.class, registry).deserializer(),
                score,
                Flaw.OTHER_RECORD,
                "not a Rollout (topic millrace.rollouts): schema 1 is that of a dev.millrace.schemas.Score");
    }

    @Test
    void shouldRefuseAVersionThatLacksARequiredField() {
        Schema stripped = SchemaBuilder.record("Serving")
                .namespace("dev.millrace.schemas")
                .fields()
                .requiredString("run_id")
                .endRecord();
        int id = registry.idOf("x-value", stripped);

        assertThatThrownBy(() -> AvroSerde.of(Serving.class, registry)
                        .deserializer()
                        .deserialize(TOPIC, new byte[] {0, 0, 0, 0, (byte) id, 2, 'r'}))
                .isInstanceOfSatisfying(
                        MalformedRecordException.class,
                        e -> assertThat(e.flaw()).isEqualTo(Flaw.INCOMPATIBLE_SCHEMA))
                .hasMessageContaining("epoch");
    }

    @Test
    void shouldRefuseBytesAfterTheRecord() {
        AvroSerde<Serving> serde = AvroSerde.of(Serving.class, registry);
        byte[] whole = serde.serializer().serialize(TOPIC, Examples.serving());

        assertRefused(
                serde.deserializer(),
                Arrays.copyOf(whole, whole.length + 3),
                Flaw.TRAILING_BYTES,
                "not a Serving (topic millrace.rollouts): 3 bytes follow the record");
    }

    @Test
    void shouldRefuseTextThatIsNotUtf8AndKeepARealReplacementCharacter() {
        AvroSerde<Serving> serde = AvroSerde.of(Serving.class, registry);
        Serving serving = Examples.serving();
        serving.put("run_id", "run-\uFFFD");
        byte[] bytes = serde.serializer().serialize(TOPIC, serving);

        assertThat(serde.deserializer().deserialize(TOPIC, bytes).getRunId()).isEqualTo("run-\uFFFD");

        bytes[6] = (byte) 0xff;
        assertThatThrownBy(() -> serde.deserializer().deserialize(TOPIC, bytes))
                .isInstanceOf(MalformedRecordException.class)
                .hasMessageContaining("is not UTF-8");
    }

    @Test
    void shouldNotBlameTheRecordForARegistryOutOfReach() {
        SchemaRegistry away = new SchemaRegistry() {
            @Override
            public int idOf(String subject, Schema schema) {
                throw new SchemaRegistryException("away");
            }

            @Override
            public Schema byId(int id) {
                throw new SchemaRegistryException("away");
            }

            @Override
            public void close() {
                // nothing is held
            }
        };

        assertThatThrownBy(() -> AvroSerde.of(Serving.class, away)
                        .deserializer()
                        .deserialize(TOPIC, new byte[] {0, 0, 0, 0, 1, 2}))
                .isInstanceOf(SchemaRegistryException.class)
                .hasMessage("away");
    }

    private static void assertRefused(AvroRecordDeserializer<?> deserializer, byte[] bytes, Flaw flaw, String message) {
        assertThatThrownBy(() -> deserializer.deserialize(TOPIC, bytes))
                .isInstanceOfSatisfying(
                        MalformedRecordException.class,
                        e -> assertThat(e.flaw()).isEqualTo(flaw))
                .hasMessage(message);
    }

    @SuppressWarnings("unchecked") // the serde of the example's own class
    private AvroSerde<SpecificRecord> serdeOf(SpecificRecord example) {
        return (AvroSerde<SpecificRecord>) AvroSerde.of(example.getClass(), registry);
    }
}
