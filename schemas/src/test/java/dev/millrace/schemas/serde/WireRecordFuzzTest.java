package dev.millrace.schemas.serde;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.Examples;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.RolloutLimits;
import dev.millrace.schemas.rollout.RolloutValidator;
import dev.millrace.schemas.run.RunIdentity;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.avro.specific.SpecificRecord;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Arbitrary bytes as a record of the kind chosen by the first byte: gives a record that round-trips, or a named error;
 * rollouts are also validated.
 */
@Timeout(300)
public class WireRecordFuzzTest {
    private static final InMemorySchemaRegistry REGISTRY = new InMemorySchemaRegistry();
    private static final List<AvroSerde<SpecificRecord>> SERDES = new ArrayList<>();
    private static final RolloutValidator VALIDATOR =
            new RolloutValidator(new RunIdentity("run-1", 2, "policy"), new RolloutLimits("", 0, 0, 4096, 1e6));

    static {
        for (SpecificRecord example : Examples.all()) {
            @SuppressWarnings("unchecked")
            AvroSerde<SpecificRecord> serde = AvroSerde.of((Class<SpecificRecord>) example.getClass(), REGISTRY);
            serde.serializer().serialize("topic", example); // registers its schema, by the same number in every run
            SERDES.add(serde);
        }
    }

    /** Called by the fuzzer with what it made up. */
    public static void fuzzerTestOneInput(byte[] input) {
        if (input.length == 0) {
            return;
        }
        AvroSerde<SpecificRecord> serde = SERDES.get((input[0] & 0xff) % SERDES.size());
        SpecificRecord record;
        try {
            record = serde.deserializer().deserialize("topic", Arrays.copyOfRange(input, 1, input.length));
        } catch (MalformedRecordException e) {
            assertThat(e.flaw()).isNotNull();
            return;
        }
        byte[] written = serde.serializer().serialize("topic", record);
        assertThat(serde.deserializer().deserialize("topic", written)).isEqualTo(record);
        if (record instanceof Rollout rollout) {
            try {
                VALIDATOR.validate(rollout, rollout.getGroupId().getBytes(StandardCharsets.UTF_8));
            } catch (RefusedException e) {
                assertThat(e.getMessage()).isNotBlank();
            }
        }
    }

    static Stream<Path> corpus() throws IOException {
        return Files.list(Path.of("src/test/fuzz", WireRecordFuzzTest.class.getName()))
                .sorted();
    }

    @ParameterizedTest
    @MethodSource("corpus")
    void shouldReadARecordOrNameItsFlaw(Path input) throws IOException {
        fuzzerTestOneInput(Files.readAllBytes(input));
    }
}
