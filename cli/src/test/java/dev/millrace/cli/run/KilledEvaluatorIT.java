package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.evaluation.EvaluationRecords;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.VersionEvaluation;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** An evaluator that is killed in the middle of an evaluation begins it again, and nobody finds two records of one version. */
@Tag("faults")
@Timeout(600)
class KilledEvaluatorIT {
    private static final Duration LIMIT = Duration.ofMinutes(2);
    private static final List<String> SETTINGS = List.of(
            "run.id=killed",
            "run.topic_prefix=millrace.",
            "evaluation={every_versions: 10, prompts: 400, samples: 40}"); // long enough to be in the middle of it

    @TempDir
    private Path folder;

    @Test
    void shouldWriteOneRecordOfAVersionHoweverOftenItIsKilled() throws Exception {
        ConfigLayers layers = new ConfigLayers();
        SETTINGS.forEach(layers::set);
        MillraceConfig config = layers.resolve();
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("broker"));
                RunLog log = config.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        config.topics(),
                        Optional.of(RecordedConfiguration.of(config).text()));
                Pipeline pipeline =
                        new Pipeline(config, log.connection(), new SimpleMeterRegistry(), Clock.systemUTC());
                LoggedRun run = LoggedRun.on(broker.bootstrapServers(), "killed", "millrace.")) {
            pipeline.firstVersion().run().run();

            VersionEvaluation only;
            try (TrainProcess first = evaluator(broker)) {
                await(() -> isEvaluating(run), first);
            } // SIGKILL
            assertThat(evaluations(run)).as("killed in the middle").isEmpty();
            try (TrainProcess second = evaluator(broker)) {
                await(() -> evaluations(run).size() == 1, second);
                only = evaluations(run).get(0);
            }
            int heartbeats = heartbeats(run);
            try (TrainProcess third = evaluator(broker)) {
                await(() -> third.toString().contains("evaluator of run killed"), third);
                assertThat(first(log.connection(), config))
                        .as("what a fourth one finds")
                        .isEqualTo(only);
            }
            assertThat(evaluations(run)).containsExactly(only);
            assertThat(heartbeats(run)).as("nothing was evaluated again").isEqualTo(heartbeats);
            assertThat(EvaluationRecords.recomputed(only)).isEqualTo(only);
            assertThat(only.getVersion()).isZero();
        }
    }

    /** In this process, which takes over from the one that runs. */
    private static VersionEvaluation first(LogConnection connection, MillraceConfig config) throws Exception {
        try (Pipeline pipeline = new Pipeline(config, connection, new SimpleMeterRegistry(), Clock.systemUTC())) {
            var evaluator = pipeline.evaluator();
            Thread running = new Thread(evaluator::run);
            running.start();
            await(() -> !evaluator.evaluations().isEmpty(), evaluator);
            evaluator.stop();
            running.join(LIMIT.toMillis());
            return evaluator.evaluations().last().orElseThrow();
        }
    }

    private TrainProcess evaluator(EmbeddedBroker broker) {
        return TrainProcess.start(
                folder,
                List.of(
                        "evaluate",
                        "--follow",
                        "--bootstrap-servers",
                        broker.bootstrapServers(),
                        "--run",
                        "killed",
                        "--topic-prefix",
                        "millrace."));
    }

    private static boolean isEvaluating(LoggedRun run) {
        return heartbeats(run) > 0;
    }

    private static int heartbeats(LoggedRun run) {
        return (int) run.records(run.topics().serving(), Serving.class).stream()
                .filter(serving -> serving.getRole() == ServerRole.EVALUATOR)
                .count();
    }

    private static List<VersionEvaluation> evaluations(LoggedRun run) {
        return run.records(run.topics().evaluations(), VersionEvaluation.class);
    }

    private static void await(BooleanSupplier condition, Object said) throws InterruptedException {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as(said::toString).isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }
}
