package dev.millrace.topology.ingress;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.topology.task.TopologyMeters;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.junit.jupiter.api.Test;

class IngressProcessorTest {
    private static final byte[] VALUE = new byte[1 << 20];

    private final List<ProcessorRecordContext> contexts = new ArrayList<>();

    @Test
    void shouldLeaveNoSourceRecordToTheCachesOfStores() {
        Topology topology = new Topology()
                .addSource("records", new ByteArrayDeserializer(), new ByteArrayDeserializer(), "rollouts")
                .addProcessor("read", this::ingress, "records")
                .addProcessor("next", Contexts::new, "read");

        try (TopologyTestDriver driver = new TopologyTestDriver(topology, new Properties())) {
            driver.createInputTopic("rollouts", new ByteArraySerializer(), new ByteArraySerializer())
                    .pipeInput(new byte[] {1}, VALUE);
        }

        assertThat(contexts).singleElement().satisfies(context -> {
            assertThat(context.sourceRawKey()).isNull();
            assertThat(context.sourceRawValue()).isNull();
        });
    }

    private IngressProcessor<Integer> ingress() {
        return new IngressProcessor<>(
                (raw, partition, offset) -> Optional.of(raw.value().length),
                "next",
                "dead-letters",
                new TopologyMeters(new SimpleMeterRegistry()),
                new RunIdentity("run", 0, "policy"),
                EpochLineage.FIRST);
    }

    /** What the entries that a processor puts into a cached store keep. */
    private final class Contexts extends ContextualProcessor<Object, Object, Object, Object> {
        @Override
        public void process(Record<Object, Object> record) {
            assertThat(record.value()).isEqualTo(VALUE.length);
            contexts.add((ProcessorRecordContext) context().recordMetadata().orElseThrow());
        }
    }
}
