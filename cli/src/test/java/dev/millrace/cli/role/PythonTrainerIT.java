package dev.millrace.cli.role;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import com.sun.net.httpserver.HttpServer;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.registry.RegistryHttpApi;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
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
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The example trainer in Python in the learner's place: killed and started again, it trains a policy that the generators
 * take up. Needs Debian's python3-confluent-kafka, python3-avro and python3-numpy.
 */
@Timeout(240)
class PythonTrainerIT {
    private static final Path TRAINER = Path.of("../infra/examples/trainer/train.py");
    private static final List<String> PYTHONS = List.of("python3", "/usr/bin/python3");
    private static final int STEPS = 8;

    @TempDir
    private Path directory;

    @Test
    void shouldTrainInTheLearnersPlace() throws Exception {
        String python = python();
        MillraceConfig config = config();
        MeterRegistry meters = new SimpleMeterRegistry();
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"));
                RunLog log = RunLog.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        config.run().topics(),
                        config.run().identity(),
                        config.topics(),
                        "",
                        Clock.systemUTC())) {
            HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
            new RegistryHttpApi(log.registryContents().orElseThrow()).mount(server);
            server.start();
            try (Pipeline pipeline = new Pipeline(config, log.connection(), meters, Clock.systemUTC());
                    RoleThreads threads = new RoleThreads(Duration.ofSeconds(30))) {
                Role first = pipeline.firstVersion();
                threads.start(first);
                awaitUntil(threads, () -> threads.hasEnded(first));
                threads.start(pipeline.admission());
                threads.start(pipeline.generator());
                threads.start(pipeline.scorer(ScorerPurpose.LEARNER));
                threads.start(pipeline.topology(directory.resolve("streams")));

                String registry = "http://127.0.0.1:" + server.getAddress().getPort();
                Process killed = start(python, broker, registry, "killed", STEPS);
                awaitUntil(threads, () -> printed("killed").contains("version 2 "));
                killed.destroyForcibly().waitFor();
                Process second = start(python, broker, registry, "second", STEPS);
                assertThat(second.waitFor(150, TimeUnit.SECONDS))
                        .as("ends in time; it printed %s", printed("second"))
                        .isTrue();
                assertThat(second.exitValue())
                        .as(
                                "exit status, with on standard error: %s",
                                Files.readString(directory.resolve("second.err")))
                        .isZero();
                awaitUntil(threads, () -> served(meters) >= STEPS);
                threads.stop();
                assertThat(threads.failure()).isEmpty();
            } finally {
                server.stop(0);
            }

            Account account = new LedgerReader(log.connection()).read(Duration.ofSeconds(30));
            assertThat(account.steps())
                    .extracting(TrainingStep::getVersion)
                    .containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L);
            assertThat(account.steps())
                    .extracting(TrainingStep::getBatchId)
                    .containsExactly(0L, 1L, 2L, 3L, 4L, 5L, 6L, 7L);
            assertThat(meanReward(account.steps().subList(STEPS - 3, STEPS)))
                    .as("it learns")
                    .isGreaterThan(1.3 * meanReward(account.steps().subList(0, 2)));
            try (PolicyFeed feed = new PolicyFeed(log.connection(), WeightsConfig.defaults())) {
                assertThat(feed.newestCommitted().orElseThrow().getWeights().getSha256())
                        .isEqualTo(account.steps().get(STEPS - 1).getWeightsSha256());
                feed.load(STEPS);
                assertThat(feed.loadOptimizer(STEPS).steps())
                        .as("a learner of ours could go on")
                        .isEqualTo(STEPS);
            }
        }
    }

    private static MillraceConfig config() {
        var tree = ConfigTree.empty();
        ConfigTree.set(tree, "run.id=python");
        ConfigTree.set(tree, "weights.anchor_every=1");
        ConfigTree.set(tree, "topology.batch.record_weights=true");
        return ConfigBinder.bind(MillraceConfig.defaults(), tree);
    }

    private Process start(String python, EmbeddedBroker broker, String registry, String name, int steps)
            throws IOException {
        return new ProcessBuilder(
                        python,
                        TRAINER.toString(),
                        "--bootstrap-servers",
                        broker.bootstrapServers(),
                        "--registry",
                        registry,
                        "--prefix",
                        "millrace.",
                        "--run",
                        "python",
                        "--steps",
                        Integer.toString(steps))
                .redirectOutput(directory.resolve(name + ".out").toFile())
                .redirectError(directory.resolve(name + ".err").toFile())
                .start();
    }

    private String printed(String name) {
        try {
            Path err = directory.resolve(name + ".err");
            return Files.readString(directory.resolve(name + ".out")) + Files.readString(err);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private static double meanReward(List<TrainingStep> steps) {
        return steps.stream().mapToDouble(TrainingStep::getRewardMean).average().orElseThrow();
    }

    private static double served(MeterRegistry meters) {
        Gauge gauge =
                meters.find("millrace.policy.version").tag("role", "generator").gauge();
        return gauge == null ? -1 : gauge.value();
    }

    private void awaitUntil(RoleThreads threads, BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (!condition.getAsBoolean()) {
            assertThat(threads.failure()).isEmpty();
            assertThat(System.nanoTime())
                    .as(
                            "waited for 120 s; the trainer printed %s",
                            Files.exists(directory.resolve("killed.out")) ? printed("killed") : "nothing")
                    .isLessThan(deadline);
            LockSupport.parkNanos(20_000_000);
        }
    }

    private static String python() throws Exception {
        for (String python : PYTHONS) {
            try {
                Process probe = new ProcessBuilder(python, "-c", "import confluent_kafka.avro, avro, numpy")
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
                if (probe.waitFor(60, TimeUnit.SECONDS) && probe.exitValue() == 0) {
                    return python;
                }
            } catch (IOException e) {
                continue; // this one is not installed; another may be
            }
        }
        return abort("no python3 with confluent_kafka, avro and numpy is installed"
                + " (Debian: apt-get install python3-confluent-kafka python3-avro python3-requests python3-numpy)");
    }
}
