package dev.millrace.topology;

import static dev.millrace.topology.RunOnBroker.await;
import static dev.millrace.topology.RunOnBroker.settled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TopologyRunnerIT {
    @TempDir
    static Path directory;
    private static EmbeddedBroker broker;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory.resolve("broker"));
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @Test
    void shouldMakeBatchesAndDeadLetterGarbageWithoutStopping() throws Exception {
        try (RunOnBroker run = new RunOnBroker(broker, "basic.")) {
            TopologyRunner runner = new TopologyRunner(
                MillraceTopologyTest.batchesOf(4), run.connection, directory.resolve("basic"), new SimpleMeterRegistry());
            CompletableFuture<Void> ended = CompletableFuture.runAsync(runner::run);
            settled(run.send(run.connection.topics().rollouts(), "g0", "garbage".getBytes(StandardCharsets.UTF_8)));
            for (int group = 0; group < 4; group++) {
                run.sendScored(Samples.rollout("g" + group, 0).setReward(0).build());
                run.sendScored(Samples.rollout("g" + group, 1).build());
            }
            await("two batches", () -> run.read(run.connection.topics().batches()).size() == 2);
            runner.stop();
            ended.get(30, TimeUnit.SECONDS);

            List<LearnerBatch> batches = run.read(run.connection.topics().batches(), LearnerBatch.class);
            List<ConsumerRecord<byte[], byte[]>> trajectories = run.read(run.connection.topics().trajectories());
            assertThat(batches).extracting(LearnerBatch::getBatchId).containsExactly(0L, 1L);
            for (LearnerBatch batch : batches) {
                for (BatchEntry entry : batch.getEntries()) {
                    assertThat(trajectories).anySatisfy(record -> {
                        assertThat(record.offset()).isEqualTo(entry.getOffset());
                        assertThat(record.partition()).isEqualTo(entry.getPartition());
                    });
                }
            }
            assertThat(run.read(run.connection.topics().trajectories(), Trajectory.class)).hasSize(8);
            assertThat(run.read(run.connection.topics().deadLetters())).singleElement().satisfies(dead -> {
                assertThat(dead.value()).isEqualTo("garbage".getBytes(StandardCharsets.UTF_8));
                assertThat(new String(dead.headers().lastHeader("millrace.error.reason").value(), StandardCharsets.UTF_8))
                    .isEqualTo("unreadable");
            });
        }
    }

    @Test
    void shouldRefuseToStartWithoutTheTopicsOfTheRun() {
        try (RunOnBroker run = new RunOnBroker(broker, "there.")) {
            var elsewhere = new dev.millrace.schemas.run.LogConnection(run.connection.clientProperties(),
                new dev.millrace.schemas.run.RunTopics("nowhere."), Samples.RUN, run.connection.registry());
            TopologyRunner runner = new TopologyRunner(
                TopologyConfig.defaults(), elsewhere, directory.resolve("nowhere"), new SimpleMeterRegistry());
            assertThatThrownBy(runner::run).isInstanceOf(TopologyException.class)
                .hasMessageContaining("does not exist").hasMessageContaining("create the run first");
        }
    }
}
