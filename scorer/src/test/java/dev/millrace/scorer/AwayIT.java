package dev.millrace.scorer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.run.RunningRole;
import dev.millrace.generator.run.TestRun;
import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.Generator;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RoleContext;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.generator.staleness.QuarantineConfig;
import dev.millrace.generator.staleness.SamplingConfig;
import dev.millrace.generator.staleness.StalenessController;
import dev.millrace.generator.staleness.StalenessControllerConfig;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Admission, a generator and a scorer while what they write with, or the broker, is taken away: every due record comes, once. */
@Timeout(900)
class AwayIT {
    private static final List<String> ROLES = List.of("admission-0", "generator-g", "scorer-s");

    @TempDir
    private Path directory;

    /** What happens to them, while they work. */
    @FunctionalInterface
    private interface Fault {
        void happen(TestRun run) throws Exception;
    }

    @Test
    void shouldGoOnWhenTheBrokerGivesTheirTransactionsUp() throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory);
                TestRun run = new TestRun(broker, "given-up")) {
            assertEachComesOnce(run, AwayIT::fenceAll, AwayIT::fenceAll, AwayIT::fenceAll);
        }
    }

    @Test
    void shouldGoOnWhenTheBrokerWasAwayAndSampleAndScoreNothingAgainWhenItHasLostTheEndsOfTopics() throws Exception {
        EmbeddedBroker[] broker = {EmbeddedBroker.start(directory)};
        try (TestRun run = new TestRun(broker[0], "away")) {
            assertEachComesOnce(run, r -> restart(broker, () -> {}));
            TopicPartition request = ofLastGroup(run, run.connection().topics().prompts());
            TopicPartition rollouts = ofLastGroup(run, run.connection().topics().rollouts());
            restart(broker, () -> {
                cut(request);
                cut(rollouts);
            });
            assertOnlyWhatIsNewIsDone(run, request.partition());
        } finally {
            broker[0].close();
        }
    }

    private void restart(EmbeddedBroker[] broker, Executable whileAway) throws Exception {
        int port = Integer.parseInt(broker[0].bootstrapServers().substring("127.0.0.1:".length()));
        broker[0].close();
        try {
            whileAway.execute();
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
        broker[0] = EmbeddedBroker.start(directory, BrokerConfig.defaults().withPort(port));
    }

    /** Position of a group that was released separately, after others. */
    private static TopicPartition ofLastGroup(TestRun run, String topic) {
        return run.committed(topic).stream()
                .filter(record -> new String(record.key(), StandardCharsets.UTF_8).equals("0-41"))
                .map(record -> new TopicPartition(topic, record.partition()))
                .findFirst()
                .orElseThrow();
    }

    /** Simulates a power loss: removes the last transaction of a partition. */
    private void cut(TopicPartition lost) throws IOException {
        Path partition = directory.resolve(lost.toString());
        try (DirectoryStream<Path> files = Files.newDirectoryStream(partition, "*{index,snapshot,checkpoint}")) {
            for (Path file : files) {
                Files.delete(file);
            }
        }
        try (RandomAccessFile log = new RandomAccessFile(
                partition.resolve("00000000000000000000.log").toFile(), "rw")) {
            long lastEnd = 0;
            long oneBefore = 0;
            for (long at = 0; at < log.length(); ) {
                log.seek(at + 8); // a batch: base offset, length, ...
                long next = at + 12 + log.readInt();
                log.seek(at + 21); // attributes
                if ((log.readShort() & 0x20) != 0) { // the mark that ends a transaction
                    oneBefore = lastEnd;
                    lastEnd = next;
                }
                at = next;
            }
            assertThat(oneBefore).as("more than one transaction on " + lost).isPositive();
            log.setLength(oneBefore);
        }
        Files.deleteIfExists(directory.resolve(".kafka_cleanshutdown"));
        Files.deleteIfExists(directory.resolve("recovery-point-offset-checkpoint"));
    }

    /** The groups' committed offsets are beyond the lost records; another request follows at their offset. */
    private static void assertOnlyWhatIsNewIsDone(TestRun run, int partition) {
        String prompts = run.connection().topics().prompts();
        String rollouts = run.connection().topics().rollouts();
        String scores = run.connection().topics().scores();
        List<Rollout> before = all(run, Rollout.class, rollouts);
        int scored = all(run, Score.class, scores).size();
        assertThat(before).hasSizeLessThan(168);
        assertThat(scored).isEqualTo(168);
        PromptRequest another = PromptRequest.newBuilder(
                        all(run, PromptRequest.class, prompts).get(0))
                .setGroupId("0-900")
                .setOrdinal(900)
                .build();
        run.write(prompts, partition, "0-900", run.bytes(PromptRequest.class, prompts, another));
        try (Generator generator = generator(run);
                Scorer scorer = scorer(run)) {
            RunningRole generating = new RunningRole("generator", generator::run, generator::stop);
            RunningRole scoring = new RunningRole("scorer", scorer::run, scorer::stop);
            run.await(scores, records -> records.size() >= scored + 4);
            generating.stop();
            scoring.stop();
        }
        assertThat(all(run, Rollout.class, rollouts))
                .extracting(Rollout::getRolloutId)
                .hasSize(before.size() + 4)
                .contains("0-900/0", "0-900/1", "0-900/2", "0-900/3")
                .doesNotHaveDuplicates();
        assertThat(all(run, Score.class, scores))
                .extracting(Score::getRolloutId)
                .hasSize(172)
                .doesNotHaveDuplicates();
    }

    private static <T extends SpecificRecord> List<T> all(TestRun run, Class<T> type, String topic) {
        List<T> records = new ArrayList<>();
        try (LogReader log = new LogReader(run.connection())) {
            List<TopicPartition> partitions = log.fromBeginning(topic);
            assertThat(log.readTo(
                            log.consumer().endOffsets(partitions),
                            ReadLimit.within(Duration.ofSeconds(90)),
                            record -> records.add(run.decode(type, record))))
                    .isTrue();
        }
        return records;
    }

    /** Aborts like the broker after a transaction timeout, without a new owner of the ids. */
    private static void fenceAll(TestRun run) throws ExecutionException, InterruptedException {
        try (Admin admin = Admin.create(run.connection().admin())) {
            admin.fenceProducers(ROLES.stream().map(run.connection()::scoped).toList())
                    .all()
                    .get();
        }
    }

    /** 40 groups of 4 while the faults happen, then two more that are released for a version that is published after them. */
    private static void assertEachComesOnce(TestRun run, Fault... faults) throws Exception {
        String rollouts = run.connection().topics().rollouts();
        String scores = run.connection().topics().scores();
        run.publish(0, 0);
        try (StalenessController admission = admission(run);
                Generator generator = generator(run);
                Scorer scorer = scorer(run)) {
            List<RunningRole> roles = List.of(
                    new RunningRole("admission", admission::run, admission::stop),
                    new RunningRole("generator", generator::run, generator::stop),
                    new RunningRole("scorer", scorer::run, scorer::stop));
            int done = 0;
            for (Fault fault : faults) {
                done += 20;
                int enough = done;
                run.await(rollouts, records -> records.size() >= enough);
                fault.happen(run);
            }
            run.await(scores, records -> records.size() >= 160);
            trained(run);
            run.await(scores, records -> records.size() >= 168);
            roles.forEach(RunningRole::stop);
        }
        assertThat(all(run, PromptRequest.class, run.connection().topics().prompts()))
                .extracting(PromptRequest::getGroupId)
                .hasSize(42)
                .doesNotHaveDuplicates();
        assertThat(all(run, Rollout.class, rollouts))
                .extracting(Rollout::getRolloutId)
                .hasSize(168)
                .doesNotHaveDuplicates();
        assertThat(all(run, Score.class, scores))
                .extracting(Score::getRolloutId)
                .hasSize(168)
                .doesNotHaveDuplicates();
        assertThat(run.connection().alarms().active()).isEmpty();
    }

    private static void trained(TestRun run) {
        String topic = run.connection().topics().batches();
        List<BatchEntry> entries = new ArrayList<>();
        for (int sample = 0; sample < 8; sample++) {
            String group = "0-" + sample / 4;
            entries.add(new BatchEntry(
                    group + "/" + sample % 4, group, 0, 0L, 0, 0L, 1.0, 0.5, 0L, 3, null, null, null, null, null));
        }
        LearnerBatch batch = LearnerBatch.newBuilder()
                .setRunId(run.connection().run().runId())
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(0)
                .setAssembledVersion(0)
                .setEntries(entries)
                .setStages(List.of())
                .setTrainedTokens(24L)
                .setStepScale(1)
                .setStalenessMean(0)
                .setStalenessMax(0)
                .setAssembledAtMs(1)
                .build();
        run.write(topic, "policy", run.bytes(LearnerBatch.class, topic, batch));
        run.publish(1, 8);
    }

    private static StalenessController admission(TestRun run) {
        return new StalenessController(
                run.connection(),
                run.feed(),
                IncPrompts.defaults().task(),
                new StalenessControllerConfig(
                        19, 8, 4, 5, SamplingConfig.defaults(), 0, 2, 1, 0, 2, QuarantineConfig.defaults(), 0),
                new SimpleMeterRegistry(),
                Clock.systemUTC());
    }

    private static Generator generator(TestRun run) {
        GeneratorConfig config = new GeneratorConfig(
                "g",
                8,
                1,
                16,
                1,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                25,
                300,
                10,
                200,
                500,
                0,
                20_000);
        return new Generator(
                new RoleContext(run.connection(), run.feed(), new SimpleMeterRegistry(), Clock.systemUTC()),
                Environments.builtIn(),
                Engine.cpu(),
                config);
    }

    private static Scorer scorer(TestRun run) {
        ScorerConfig config = new ScorerConfig(
                "s",
                32,
                1_000,
                4,
                false,
                false,
                false,
                500,
                200,
                0,
                20_000,
                FixedPolicyConfig.defaults(),
                FixedPolicyConfig.defaults());
        return new Scorer(
                run.connection(), run.feed(), Engine.cpu(), config, new SimpleMeterRegistry(), Clock.systemUTC());
    }
}
