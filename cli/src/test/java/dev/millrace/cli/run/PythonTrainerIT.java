package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.cli.python.PythonInterpreter;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.scorer.ScorerPurpose;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Trainers of the Python package in the learner's place: killed and started again, taken over, and one that reaches the default task's
 * goal. Needs Debian's python3-confluent-kafka and python3-numpy, and python3-torch for the last.
 */
@Timeout(1200)
class PythonTrainerIT {
    private static final int STEPS = 8;

    @TempDir
    private Path directory;

    private final MeterRegistry meters = new SimpleMeterRegistry();

    /** What is done while our generator, scorer, topology and admission run and nobody trains. */
    private interface Training {
        void run(EmbeddedBroker broker, RunLog log, Pipeline pipeline, RoleThreads threads) throws Exception;
    }

    @Test
    void shouldTrainInTheLearnersPlace() throws Exception {
        PythonInterpreter python = PythonInterpreter.with(directory, "confluent_kafka", "numpy");
        train(64, (broker, log, pipeline, threads) -> {
            Role learner = pipeline.learner();
            threads.start(learner);
            awaitUntil(threads, python, () -> served() >= 1);
            Process killed = numpy(python, "killed", broker, 0);
            awaitUntil(threads, python, () -> python.printed("killed").contains("reward"));
            killed.destroyForcibly().waitFor();
            Process overtaken = numpy(python, "overtaken", broker, 0);
            awaitUntil(threads, python, () -> python.printed("overtaken").contains("reward"));
            Process last = numpy(python, "last", broker, STEPS);
            assertThat(overtaken.waitFor(300, TimeUnit.SECONDS))
                    .as("ends when it is taken over")
                    .isTrue();
            assertThat(python.printed("overtaken"))
                    .contains("TakenOver: the trainer of run python is somebody else's by now")
                    .doesNotContain("Traceback");
            assertThat(last.waitFor(300, TimeUnit.SECONDS))
                    .as("ends in time; it printed %s", python.printed("last"))
                    .isTrue();
            assertThat(last.exitValue()).as(python.printed("last")).isZero();
            awaitUntil(threads, python, () -> threads.hasEnded(learner));
            threads.stop();
            assertThat(threads.failure())
                    .get()
                    .asString()
                    .as("Millrace's own learner has ended when the first in Python took over")
                    .contains("fenced by");

            Account account = new LedgerReader(log.connection()).read(TrainProcess.PATIENCE);
            requireEveryStepOnce(account);
            int newest = account.steps().size();
            try (PolicyFeed feed = new PolicyFeed(log.connection(), WeightsConfig.defaults())) {
                assertThat(feed.newestCommitted().orElseThrow().getWeights().getSha256())
                        .isEqualTo(account.steps().get(newest - 1).getWeightsSha256());
                assertThat(LongStream.of(newest - 1, newest)
                                .mapToObj(version ->
                                        feed.manifest(version).getWeights().getBaseVersion()))
                        .as("every fourth is whole, the others are deltas, made in Python")
                        .anyMatch(Objects::nonNull);
                feed.load(newest);
                assertThat(feed.loadOptimizer(newest).steps())
                        .as("a learner of ours could go on")
                        .isEqualTo(newest);
            }
            Process reader = python.start(
                    "reader",
                    Map.of(),
                    "-c",
                    "import millrace_rl, sys; run = millrace_rl.Run(sys.argv[1], 'python');"
                            + " print(run.steps()['version'].tolist(), run.rollouts().rows, sum(map(len, run.batches())));"
                            + " plain = lambda r: {k: v for k, v in r.items() if k not in ('partition', 'offset', 'timestamp_ms')};"
                            + " submitted = run.submit(plain(next(run.records('rollouts'))));"
                            + " two = [repr(plain(r)) for r in run.records('rollouts') if r['rollout_id'] == submitted];"
                            + " print('submitted', len(two), two[0] == two[1])",
                    broker.bootstrapServers());
            assertThat(reader.waitFor(300, TimeUnit.SECONDS)).isTrue();
            assertThat(python.printed("reader"))
                    .startsWith(account.steps().stream()
                                    .map(TrainingStep::getVersion)
                                    .toList()
                            + " " + account.balance().all().generated() + " ")
                    .as("a rollout that was submitted again is there as it was")
                    .contains("submitted 2 True");
        });
    }

    @Test
    @Tag("faults")
    void shouldReachTheGoalWithTrainerAndGeneratorInTorch() throws Exception {
        PythonInterpreter python = PythonInterpreter.with(directory, "confluent_kafka", "numpy", "torch");
        train(256, (broker, log, pipeline, threads) -> {
            publishFirst(pipeline, threads, python);
            Process generator =
                    python.example("generator", "generate.py", broker.bootstrapServers(), "python", "python-1");
            Process trainer = python.example(
                    "trainer", "train.py", broker.bootstrapServers(), "python", "--goal", "0.9", "--steps", "400");
            try {
                assertThat(trainer.waitFor(400, TimeUnit.SECONDS))
                        .as("ends in time; it printed %s", python.printed("trainer"))
                        .isTrue();
            } finally {
                generator.destroyForcibly().waitFor();
                trainer.destroyForcibly().waitFor();
            }
            assertThat(trainer.exitValue()).as(python.printed("trainer")).isZero();
            threads.stop();
            Account account = new LedgerReader(log.connection()).read(TrainProcess.PATIENCE);
            List<TrainingStep> steps = account.steps();
            assertThat(meanReward(steps.subList(steps.size() - 10, steps.size())))
                    .isGreaterThanOrEqualTo(0.9);
            assertThat(account.balance().addsUp()).isTrue();
        });
    }

    private void train(int sequences, Training training) throws Exception {
        MillraceConfig config = new ConfigLayers()
                .set("run.id=python")
                .set("topology.batch.record_weights=true")
                .set("admission.batch_sequences=" + sequences)
                .set("topology.batch.sequences=" + sequences)
                .resolve();
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"));
                RunLog log = RunLog.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        config.run().topics(),
                        config.run().identity(),
                        config.topics(),
                        "",
                        Clock.systemUTC());
                Pipeline pipeline = new Pipeline(config, log.connection(), meters, Clock.systemUTC());
                RoleThreads threads = new RoleThreads(TrainProcess.PATIENCE)) {
            threads.start(pipeline.admission());
            threads.start(pipeline.generator());
            threads.start(pipeline.scorer(ScorerPurpose.LEARNER));
            threads.start(pipeline.topology(directory.resolve("streams")));
            training.run(broker, log, pipeline, threads);
        }
    }

    /** @param steps last version; 0 for no limit */
    private static Process numpy(PythonInterpreter python, String name, EmbeddedBroker broker, int steps)
            throws Exception {
        return python.example(
                name,
                "train_numpy.py",
                "--bootstrap-servers",
                broker.bootstrapServers(),
                "--run",
                "python",
                "--anchor-every",
                "4",
                "--steps",
                Integer.toString(steps));
    }

    private void publishFirst(Pipeline pipeline, RoleThreads threads, PythonInterpreter python) {
        Role first = pipeline.firstVersion();
        threads.start(first);
        awaitUntil(threads, python, () -> threads.hasEnded(first));
    }

    private static void requireEveryStepOnce(Account account) {
        int steps = account.steps().size();
        assertThat(steps).isGreaterThanOrEqualTo(STEPS);
        assertThat(account.steps())
                .extracting(TrainingStep::getVersion)
                .containsExactlyElementsOf(
                        LongStream.rangeClosed(1, steps).boxed().toList());
        assertThat(account.steps())
                .extracting(TrainingStep::getBatchId)
                .containsExactlyElementsOf(LongStream.range(0, steps).boxed().toList());
        assertThat(account.balance().addsUp()).isTrue();
    }

    private static double meanReward(List<TrainingStep> steps) {
        return steps.stream().mapToDouble(TrainingStep::getRewardMean).average().orElseThrow();
    }

    private double served() {
        Gauge gauge =
                meters.find("millrace.policy.version").tag("role", "generator").gauge();
        return gauge == null ? -1 : gauge.value();
    }

    private static void awaitUntil(RoleThreads threads, PythonInterpreter python, BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(300);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime())
                    .as(
                            "waited for 300 s; the trainers printed %s",
                            python.printed("killed") + python.printed("overtaken") + python.printed("last"))
                    .isLessThan(deadline);
            LockSupport.parkNanos(20_000_000);
        }
    }
}
