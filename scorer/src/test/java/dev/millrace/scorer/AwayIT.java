package dev.millrace.scorer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.answer.IncPrompts;
import dev.millrace.generator.run.RunningRole;
import dev.millrace.generator.run.TestRun;
import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.Generator;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.generator.staleness.QuarantineConfig;
import dev.millrace.generator.staleness.SamplingConfig;
import dev.millrace.generator.staleness.StalenessController;
import dev.millrace.generator.staleness.StalenessControllerConfig;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Admission, a generator and a scorer while what they write with, or the broker, is taken away: what is due comes, and once. */
@Timeout(120)
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
    void shouldGoOnWhenTheBrokerWasAway() throws Exception {
        EmbeddedBroker[] broker = {EmbeddedBroker.start(directory)};
        try (TestRun run = new TestRun(broker[0], "away")) {
            assertEachComesOnce(run, r -> {
                int port = Integer.parseInt(broker[0].bootstrapServers().substring("127.0.0.1:".length()));
                broker[0].close();
                broker[0] =
                        EmbeddedBroker.start(directory, BrokerConfig.defaults().withPort(port));
            });
        } finally {
            broker[0].close();
        }
    }

    /** As the broker does it with a transaction that was open for too long; nobody has taken the ids over. */
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
        assertThat(run.await(PromptRequest.class, run.connection().topics().prompts(), 42))
                .extracting(PromptRequest::getGroupId)
                .hasSize(42)
                .doesNotHaveDuplicates();
        assertThat(run.await(Rollout.class, rollouts, 168))
                .extracting(Rollout::getRolloutId)
                .hasSize(168)
                .doesNotHaveDuplicates();
        assertThat(run.await(Score.class, scores, 168))
                .extracting(Score::getRolloutId)
                .hasSize(168)
                .doesNotHaveDuplicates();
        assertThat(run.connection().alarms().standing()).isEmpty();
    }

    private static void trained(TestRun run) {
        String topic = run.connection().topics().batches();
        List<BatchEntry> entries = new ArrayList<>();
        for (int sample = 0; sample < 8; sample++) {
            String group = "0-" + sample / 4;
            entries.add(new BatchEntry(
                    group + "/" + sample % 4, group, 0, 0L, 0, 0L, 1.0, 0.5, 0L, 3, null, null, null, null));
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
                        19, 8, 4, 5, SamplingConfig.defaults(), 0, 2, 1, 2, QuarantineConfig.defaults(), 0),
                new SimpleMeterRegistry(),
                Clock.systemUTC());
    }

    private static Generator generator(TestRun run) {
        GeneratorConfig config = new GeneratorConfig(
                "g", 8, 16, 1, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE, 300, 10, 200, 500, 0, 20_000);
        return new Generator(
                run.connection(),
                run.feed(),
                Environments.builtIn(),
                Engine.cpu(),
                config,
                new SimpleMeterRegistry(),
                Clock.systemUTC());
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
