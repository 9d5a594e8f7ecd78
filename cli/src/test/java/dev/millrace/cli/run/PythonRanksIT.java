package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.python.PythonInterpreter;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RunLog;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.runtime.rights.SecuredBroker;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.scorer.ScorerPurpose;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.IntFunction;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A torch trainer of two ranks, one of them killed, and an undisturbed one; each on its copy of a log with batches. Needs
 * Debian's python3-confluent-kafka, python3-numpy and python3-torch.
 */
@Timeout(1200)
class PythonRanksIT {
    private static final int STEPS = 6;
    private static final int BEFORE_KILL = 3;
    /** Largest difference of a weight between one rank and two, which add up in another order. */
    private static final float ROUNDING = 1e-5f;

    /** Runs a program that kill -9 ends at a call: the function, which call of it, the program and its arguments. */
    private static final String KILLED = """
            import os, pkgutil, runpy, signal, sys
            place, name = sys.argv[1].rsplit(".", 1)
            holder, left = pkgutil.resolve_name(place), int(sys.argv[2])
            call = getattr(holder, name)
            def counted(*arguments, **more):
                global left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **more)
            setattr(holder, name, counted)
            sys.argv = sys.argv[3:]
            runpy.run_path(sys.argv[0], run_name="__main__")
            """;

    private final MillraceConfig config = new ConfigLayers()
            .set("run.id=python")
            .set("topology.batch.record_weights=true")
            .set("topology.batch.sequences=32")
            .set("admission.batch_sequences=32")
            .set("admission.eta=" + 2 * STEPS)
            .resolve();

    @TempDir
    private Path directory;

    /** What a trainer left on the log. */
    private record Trained(List<PolicyVersion> versions, List<TrainingStep> steps, TensorSet weights) {
        List<String> hashes() {
            return versions.stream()
                    .flatMap(version -> Stream.of(version.getWeights(), version.getOptimizer()))
                    .map(TensorLocation::getSha256)
                    .toList();
        }
    }

    private interface Ranks {
        void train(String bootstrapServers) throws Exception;
    }

    @Test
    void shouldMakeTheSameVersionsWhicheverRankIsKilled() throws Exception {
        PythonInterpreter python = PythonInterpreter.with(directory, "confluent_kafka", "numpy", "torch");
        Path log = record();
        Trained alone = train(log, "alone", broker -> runToEnd(python, broker, "alone", 2));

        Trained following = train(log, "following", broker -> {
            int calls = alone.weights().specs().size() + 1; // of each step: one for a gradient, one for the metrics
            kill(python, broker, "following", 1, "torch.distributed.all_reduce", BEFORE_KILL * calls + calls / 2);
            runToEnd(python, broker, "following-again", 2);
        });
        Trained leading = train(log, "leading", broker -> {
            int take = 1; // which commits, too
            kill(python, broker, "leading", 0, "millrace_rl.producing.Transactions._commit", take + BEFORE_KILL + 1);
            runToEnd(python, broker, "leading-again", 2);
        });
        Trained single = train(log, "single", broker -> runToEnd(python, broker, "single", 1));

        for (Trained each : List.of(alone, following, leading, single)) {
            requireEveryBatchOnce(each);
        }
        assertThat(following.hashes()).isEqualTo(alone.hashes());
        assertThat(leading.hashes()).isEqualTo(alone.hashes());
        assertThat(largestDifference(single.weights(), alone.weights()))
                .as("two ranks add up in another order than one")
                .isLessThan(ROUNDING);
    }

    private static void requireEveryBatchOnce(Trained trained) {
        assertThat(trained.versions())
                .extracting(PolicyVersion::getVersion)
                .containsExactlyElementsOf(
                        LongStream.rangeClosed(0, STEPS).boxed().toList());
        assertThat(trained.steps())
                .extracting(TrainingStep::getVersion)
                .containsExactlyElementsOf(
                        LongStream.rangeClosed(1, STEPS).boxed().toList());
        assertThat(trained.steps())
                .extracting(TrainingStep::getBatchId)
                .containsExactlyElementsOf(LongStream.range(0, STEPS).boxed().toList());
    }

    /** Leaves the log of a run with a first version and enough batches for all steps. */
    private Path record() throws Exception {
        Path log = directory.resolve("log");
        try (EmbeddedBroker broker = EmbeddedBroker.start(log);
                RunLog run = open(broker);
                Pipeline pipeline =
                        new Pipeline(config, run.connection(), new SimpleMeterRegistry(), Clock.systemUTC());
                RoleThreads threads = new RoleThreads(TrainProcess.PATIENCE);
                LoggedRun seen = seen(broker)) {
            Role first = pipeline.firstVersion();
            threads.start(first);
            await(() -> threads.hasEnded(first));
            threads.start(pipeline.admission());
            threads.start(pipeline.generator());
            threads.start(pipeline.scorer(ScorerPurpose.LEARNER));
            threads.start(pipeline.topology(directory.resolve("streams")));
            await(() ->
                    seen.records(seen.topics().batches(), LearnerBatch.class).size() >= STEPS);
            threads.stop();
            assertThat(threads.failure()).isEmpty();
        }
        return log;
    }

    /** What ranks make of a copy of the log. */
    private Trained train(Path log, String name, Ranks ranks) throws Exception {
        Path copy = directory.resolve(name);
        try (Stream<Path> files = Files.walk(log)) {
            for (Path file : files.toList()) {
                Files.copy(file, copy.resolve(log.relativize(file)));
            }
        }
        try (EmbeddedBroker broker = EmbeddedBroker.start(copy);
                LoggedRun seen = seen(broker)) {
            ranks.train(broker.bootstrapServers());
            List<PolicyVersion> versions = seen.records(seen.topics().policyVersions(), PolicyVersion.class);
            List<TrainingStep> steps = seen.records(seen.topics().trainingLog(), TrainingStep.class);
            try (PolicyFeed feed = new PolicyFeed(seen.connection(), WeightsConfig.defaults());
                    Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
                OffsetAndMetadata committed = admin.listConsumerGroupOffsets(
                                seen.topics().prefix() + "learner")
                        .partitionsToOffsetAndMetadata()
                        .get(90, TimeUnit.SECONDS)
                        .get(new TopicPartition(seen.topics().batches(), 0));
                assertThat(committed.offset())
                        .as("behind the last batch that was trained on")
                        .isEqualTo(seen.records(seen.topics().batches())
                                        .get(STEPS - 1)
                                        .offset()
                                + 1);
                feed.newestCommitted(); // waits for all versions
                return new Trained(versions, steps, feed.load(STEPS).tensors());
            }
        }
    }

    private static void runToEnd(PythonInterpreter python, String broker, String name, int ranks) throws Exception {
        List<String> ended = run(python, broker, name, ranks, rank -> List.of());
        assertThat(ended).allMatch(printed -> printed.endsWith("exit status 0"));
    }

    /** Runs two ranks and kills one at a call of a function; expects the other to end and say why. */
    private static void kill(PythonInterpreter python, String broker, String name, int killed, String call, int count)
            throws Exception {
        List<String> ended = run(
                python,
                broker,
                name,
                2,
                rank -> rank == killed ? List.of("-c", KILLED, call, Integer.toString(count)) : List.of());
        assertThat(ended.get(killed)).endsWith("exit status 137");
        assertThat(ended.get(1 - killed))
                .contains("rank " + (1 - killed) + " cannot go on without the others: ")
                .contains("; start all 2 again, they go on from the newest version")
                .doesNotContain("Traceback")
                .endsWith("exit status 1");
        assertThat(String.join("", ended))
                .contains("version " + BEFORE_KILL + " ")
                .doesNotContain("version " + (BEFORE_KILL + 1) + " ");
    }

    /**
     * Runs a trainer's ranks until all have ended.
     *
     * @param before arguments of a rank's interpreter before the example
     * @return what each printed, and its exit status
     */
    private static List<String> run(
            PythonInterpreter python, String broker, String name, int ranks, IntFunction<List<String>> before)
            throws Exception {
        String port = Integer.toString(SecuredBroker.freePort());
        List<Process> started = new ArrayList<>();
        List<String> ended = new ArrayList<>();
        try {
            for (int rank = 0; rank < ranks; rank++) {
                List<String> line = new ArrayList<>(before.apply(rank));
                line.add(PythonInterpreter.CLIENT.resolve("examples/train.py").toString());
                line.addAll(List.of(broker, "python", "--steps", Integer.toString(STEPS)));
                Map<String, String> environment = Map.of(
                        "RANK",
                        Integer.toString(rank),
                        "WORLD_SIZE",
                        Integer.toString(ranks),
                        "MASTER_ADDR",
                        "127.0.0.1",
                        "MASTER_PORT",
                        port);
                started.add(python.start(name + "-" + rank, environment, line.toArray(String[]::new)));
            }
            for (int rank = 0; rank < ranks; rank++) {
                assertThat(started.get(rank).waitFor(300, TimeUnit.SECONDS))
                        .as("rank %d ends; it printed %s", rank, python.printed(name + "-" + rank))
                        .isTrue();
                ended.add(python.printed(name + "-" + rank) + "exit status "
                        + started.get(rank).exitValue());
            }
            return ended;
        } finally {
            started.forEach(Process::destroyForcibly);
        }
    }

    private RunLog open(EmbeddedBroker broker) {
        return RunLog.open(
                Map.of("bootstrap.servers", broker.bootstrapServers()),
                config.run().topics(),
                config.run().identity(),
                config.topics(),
                "",
                Clock.systemUTC());
    }

    private LoggedRun seen(EmbeddedBroker broker) {
        return LoggedRun.on(
                broker.bootstrapServers(), "python", config.run().topics().prefix());
    }

    private static float largestDifference(TensorSet one, TensorSet other) {
        float largest = 0;
        for (TensorSpec spec : one.specs()) {
            FloatBuffer a = one.tensor(spec.name());
            FloatBuffer b = other.tensor(spec.name());
            for (int i = 0; i < a.capacity(); i++) {
                largest = Math.max(largest, Math.abs(a.get(i) - b.get(i)));
            }
        }
        return largest;
    }

    private static void await(BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(300);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("waited for 300 s").isLessThan(deadline);
            LockSupport.parkNanos(200_000_000);
        }
    }
}
