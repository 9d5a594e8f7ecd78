package dev.millrace.view.follow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.folder.ImportedRun;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.ViewedRun.Events;
import dev.millrace.view.follow.ViewedRun.LogFeed;
import dev.millrace.view.index.RecordIndexer;
import dev.millrace.view.index.RunIndex;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** A run that continues is read to its end without viewers, and after that only while one is connected. */
@Timeout(900)
class UnseenRunIT {
    /** Requests of both readers together, in a time that suffices to find new records. */
    private static final int QUESTIONS = 20;

    @TempDir(cleanup = CleanupMode.NEVER) // the broker's, which outlives a test
    private static Path folder;

    private final AtomicBoolean isLookedAt = new AtomicBoolean();
    private final AtomicInteger questions = new AtomicInteger();

    @Test
    void shouldBeReadToItsEndAndOnWhenSomebodyLooks() throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("broker"))) {
            ImportedRun.onto(Map.of("bootstrap.servers", broker.bootstrapServers()));
            try (AuditedRun audited = opened(broker.bootstrapServers());
                    RunIndex index = RunIndex.open(folder.resolve("index"))) {
                LogConnection connection = audited.connection();
                TopicPartition steps = new TopicPartition(connection.topics().trainingLog(), 0);
                TopicPartition rollouts = new TopicPartition(connection.topics().rollouts(), 0);
                List<ConsumerRecord<byte[], byte[]>> last =
                        List.of(last(connection, steps), last(connection, rollouts));
                try (LogFeed feed = new LogFeed(
                        connection,
                        () -> new IndexFeed(
                                index,
                                new RecordIndexer(
                                        connection.topics(),
                                        connection.run().runId(),
                                        connection.registry(),
                                        Optional.empty()),
                                new Events(),
                                progress -> {}),
                        true,
                        () -> true,
                        () -> {
                            questions.incrementAndGet();
                            return isLookedAt.get();
                        })) {
                    CompletableFuture<Void> reading = CompletableFuture.runAsync(() -> feed.read("unseen"));
                    last.forEach(record -> await(() -> isIn(index, record, 0)));
                    awaitQuestions();

                    again(connection, last);
                    awaitQuestions();
                    assertThat(last).noneMatch(record -> isIn(index, record, 1));

                    isLookedAt.set(true);
                    last.forEach(record -> await(() -> isIn(index, record, 1)));
                    assertThat(reading).isNotDone();
                    feed.stop();
                    reading.get(150, TimeUnit.SECONDS);
                }
            }
        }
    }

    private static AuditedRun opened(String servers) {
        String prefix;
        try (ArchivedRun archive = new ArchivedRun(RecordedArchive.FOLDER)) {
            prefix = archive.topics().prefix();
        }
        return AuditedRun.open(
                recorded -> new ConfigLayers()
                        .begunWith(recorded)
                        .set("run.id", "recorded")
                        .set("run.topic_prefix", prefix)
                        .set("run.bootstrap_servers", servers),
                null,
                false,
                "--run recorded",
                true);
    }

    private static ConsumerRecord<byte[], byte[]> last(LogConnection connection, TopicPartition partition) {
        try (LogReader reader = new LogReader(connection)) {
            reader.from(partition, 0);
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            Map<TopicPartition, Long> ends = reader.consumer().endOffsets(List.of(partition));
            assertThat(reader.readTo(ends, ReadLimit.withoutProgress(Duration.ofSeconds(60)), records::add))
                    .isTrue();
            return records.get(records.size() - 1);
        }
    }

    private static void again(LogConnection connection, List<ConsumerRecord<byte[], byte[]>> records) {
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                connection.producer(Map.of()), new ByteArraySerializer(), new ByteArraySerializer())) {
            records.forEach(record -> producer.send(
                    new ProducerRecord<>(record.topic(), record.partition(), record.key(), record.value())));
        }
    }

    /** True if this record and those after it are indexed. */
    private static boolean isIn(RunIndex index, ConsumerRecord<byte[], byte[]> record, int behind) {
        return RecordIndexer.position(index, record.topic(), record.partition()).orElse(0L) > record.offset() + behind;
    }

    private void awaitQuestions() {
        int asked = questions.get();
        await(() -> questions.get() > asked + QUESTIONS);
    }

    private static void await(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) { // the class has a limit
            LockSupport.parkNanos(5_000_000);
        }
    }
}
