package dev.millrace.view.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class VersionIndexTest {
    private static final RunTopics TOPICS = new RunTopics("x.");
    private static final InMemorySchemaRegistry REGISTRY = new InMemorySchemaRegistry();

    @TempDir
    Path folder;

    private static ConsumerRecord<byte[], byte[]> record(long offset, PolicyVersion version) {
        String topic = TOPICS.policyVersions();
        return new ConsumerRecord<>(
                topic,
                0,
                offset,
                VersionKey.of(version).bytes(),
                AvroSerde.of(PolicyVersion.class, REGISTRY).serializer().serialize(topic, version));
    }

    private static ConsumerRecord<byte[], byte[]> tombstone(long offset, long version) {
        return new ConsumerRecord<>(
                TOPICS.policyVersions(), 0, offset, new VersionKey("policy", 0, version).bytes(), null);
    }

    private static PolicyVersion version(long version) {
        return new PolicyVersion(
                "r",
                0,
                "policy",
                version,
                version - 1,
                version - 1,
                "{}",
                "vocabulary",
                new TensorLocation(TOPICS.weights(), 0, 0L, 0L, List.of(), "00", null, null, null, null),
                null,
                version,
                0L,
                0L,
                1000L,
                Map.of(),
                null,
                null);
    }

    private static List<Long> versions(RunIndex index) {
        return index.numbers("SELECT version FROM version ORDER BY version");
    }

    @Test
    void shouldForgetOnItsTombstoneWhatNothingLeadsToAndNothingElse() throws Exception {
        try (RunIndex index = RunIndex.open(folder)) {
            RecordIndexer indexer = new RecordIndexer(TOPICS, "r", REGISTRY, Optional.empty());
            indexer.take(
                    index,
                    List.of(
                            record(0, version(0)),
                            record(1, version(1)),
                            record(2, version(999_999)),
                            record(3, version(1_000_000)),
                            record(4, version(2_000_000))),
                    true);
            assertThat(versions(index)).containsExactly(0L, 1L, 999_999L, 1_000_000L, 2_000_000L);
            indexer.take(
                    index,
                    List.of(tombstone(5, 1_000_000), tombstone(6, 2_000_000), tombstone(7, 999_999), tombstone(8, 1)),
                    true);
            assertThat(versions(index)).containsExactly(0L, 1L);
        }
    }
}
