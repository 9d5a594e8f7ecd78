package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.cli.python.PythonInterpreter;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.runtime.rights.SecuredBroker;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.scorer.ScorerPurpose;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A verifier that is killed while a run asks it, and comes back: what it could not judge costs itself, and the run continues. */
@Tag("faults")
@Timeout(900)
class KilledVerifierIT {
    private static final Path VERIFIER = Path.of("..", "infra", "examples", "verifier", "verify.py");
    private static final Duration LIMIT = Duration.ofMinutes(2);

    private final MeterRegistry meters = new SimpleMeterRegistry();

    @TempDir
    private Path folder;

    @Test
    void shouldCostNoMoreThanWhatItCouldNotJudge() throws Exception {
        PythonInterpreter python = PythonInterpreter.with(folder, "http.server");
        int port = SecuredBroker.freePort();
        MillraceConfig config = new ConfigLayers()
                .set("run.id=judged")
                .set("reward.kind=remote")
                .set("reward.url=http://127.0.0.1:" + port + "/")
                .set("reward.attempts=1")
                .set("reward.patience_ms=50")
                .resolve();
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("broker"));
                RunLog log = RunLog.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        config.run().topics(),
                        config.run().identity(),
                        config.topics(),
                        "",
                        Clock.systemUTC());
                Pipeline pipeline = new Pipeline(config, log.connection(), meters, Clock.systemUTC());
                RoleThreads threads = new RoleThreads(TrainProcess.PATIENCE)) {
            Process verifier = verifier(python, "before", port);
            try {
                threads.start(pipeline.learner());
                threads.start(pipeline.admission());
                threads.start(pipeline.generator());
                threads.start(pipeline.scorer(ScorerPurpose.LEARNER));
                threads.start(pipeline.topology(folder.resolve("streams")));
                awaitUntil(threads, () -> served() >= 3);
                assertThat(failed(log.connection())).isZero();
            } finally {
                verifier.destroyForcibly().waitFor();
            }
            awaitUntil(threads, () -> failed(log.connection()) > 0);
            verifier = verifier(python, "after", port);
            try {
                double back = served();
                awaitUntil(threads, () -> served() >= back + 5);
            } finally {
                threads.stop();
                verifier.destroyForcibly().waitFor();
            }
            assertThat(threads.failure()).isEmpty();

            Map<Boolean, List<Rollout>> byFailure = rollouts(log.connection()).stream()
                    .collect(Collectors.partitioningBy(rollout -> rollout.getFinishReason() == FinishReason.FAILED));
            assertThat(byFailure.get(true))
                    .isNotEmpty()
                    .allSatisfy(rollout -> assertThat(rollout.getError()).contains("http://127.0.0.1:" + port));
            assertThat(byFailure.get(false))
                    .allSatisfy(
                            rollout -> assertThat(rollout.getRewardComponents()).containsKey("right"));
            Account account = new LedgerReader(log.connection()).read(TrainProcess.PATIENCE);
            assertThat(account.balance().addsUp()).isTrue();
            assertThat(account.balance().all().generated())
                    .isEqualTo(byFailure.get(true).size() + byFailure.get(false).size());
        }
    }

    private static Process verifier(PythonInterpreter python, String name, int port) throws Exception {
        return python.start(name, Map.of(), VERIFIER.toAbsolutePath().toString(), "--http", Integer.toString(port));
    }

    private static long failed(LogConnection connection) {
        return rollouts(connection).stream()
                .filter(rollout -> rollout.getFinishReason() == FinishReason.FAILED)
                .count();
    }

    private static List<Rollout> rollouts(LogConnection connection) {
        String topic = connection.topics().rollouts();
        var deserializer = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        List<Rollout> records = new ArrayList<>();
        try (LogReader log = new LogReader(connection)) {
            Map<TopicPartition, Long> ends = log.consumer().endOffsets(log.fromBeginning(topic));
            assertThat(log.readTo(
                            ends,
                            ReadLimit.withoutProgress(LIMIT),
                            record -> records.add(deserializer.deserialize(topic, record.value()))))
                    .isTrue();
        }
        return records;
    }

    private double served() {
        Gauge gauge =
                meters.find("millrace.policy.version").tag("role", "generator").gauge();
        return gauge == null ? -1 : gauge.value();
    }

    private static void awaitUntil(RoleThreads threads, BooleanSupplier condition) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(threads.failure()).isEmpty();
            assertThat(System.nanoTime()).as("waited for " + LIMIT).isLessThan(deadline);
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
        }
    }
}
