package dev.millrace.chaos.loss;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import java.util.SplittableRandom;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TailCutTest {
    @TempDir
    private Path broker;

    private Path partition(String name, int batches) throws IOException {
        Path partition = Files.createDirectory(broker.resolve(name));
        Files.writeString(partition.resolve("00000000000000000000.index"), "derived");
        Path segment = Files.createFile(partition.resolve("00000000000000000000.log"));
        for (int i = 0; i < batches; i++) {
            ByteBuffer batch = MemoryRecords.withRecords(
                            2L * i, Compression.NONE, new SimpleRecord(new byte[] {1}), new SimpleRecord(new byte[] {2
                            }))
                    .buffer();
            try (FileChannel file = FileChannel.open(segment, StandardOpenOption.APPEND)) {
                file.write(batch);
            }
        }
        return segment;
    }

    @Test
    void shouldTakeWholeBatchesFromTheEndAndSayWhichOffsets() throws IOException {
        Path segment = partition("chaos.rollouts-3", 30);
        long batch = Files.size(segment) / 30;
        Files.createFile(broker.resolve(".kafka_cleanshutdown"));

        Lost lost =
                TailCut.of(broker, "chaos.rollouts", new SplittableRandom(1)).orElseThrow();

        assertThat(lost.topic()).isEqualTo("chaos.rollouts");
        assertThat(lost.partition()).isEqualTo(3);
        assertThat(lost.to()).isEqualTo(60);
        assertThat(lost.from()).isBetween(36L, 58L).isEven();
        assertThat(Files.size(segment)).isEqualTo(batch * lost.from() / 2);
        assertThat(broker.resolve("chaos.rollouts-3/00000000000000000000.index"))
                .doesNotExist();
        assertThat(broker.resolve(".kafka_cleanshutdown")).doesNotExist();
        assertThat(lost.covers("chaos.rollouts", 3, lost.from())).isTrue();
        assertThat(lost.covers("chaos.rollouts", 3, lost.to())).isFalse();
    }

    @Test
    void shouldCutNothingOfATopicWithoutRecords() throws IOException {
        partition("chaos.rollouts-0", 0);
        partition("chaos.rollouts-old-0", 3);

        assertThat(TailCut.of(broker, "chaos.rollouts", new SplittableRandom(1)))
                .isEqualTo(Optional.empty());
    }
}
