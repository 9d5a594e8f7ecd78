package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.cli.python.PythonInterpreter;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.registry.RegistryHttpApi;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.scorer.ScorerPurpose;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A generator and a rewarder that are programs of somebody else: everything that the contracts of {@code docs/how-to/own-generator.md}
 * and {@code infra/examples/reward} ask for, and nothing else of Millrace. Once in Java with stock clients, once the examples in
 * Python themselves, which needs Debian's python3-confluent-kafka, python3-avro and python3-numpy.
 */
@Timeout(900)
class ForeignPartnersIT {
    private static final Path EXAMPLES = Path.of("../infra/examples");
    private static final int STEPS = 3;
    private static final int SEQUENCES = 32;

    @TempDir
    private Path directory;

    private interface Partners {
        /** Starts them; what is returned ends them. */
        Ending start(Address address, RoleThreads threads) throws Exception;
    }

    private interface Ending {
        void end() throws Exception;
    }

    private record Address(String bootstrapServers, String registry, LogConnection connection, MillraceConfig config) {}

    @Test
    void shouldTrainOnRolloutsAndRewardsOfProgramsWithStockClients() throws Exception {
        train("stock", (address, threads) -> {
            LatestSchemas schemas = new LatestSchemas(address.registry());
            ForeignGenerator generator = new ForeignGenerator(
                    address.bootstrapServers(),
                    schemas,
                    address.connection(),
                    address.config(),
                    "stock",
                    UnaryOperator.identity());
            ForeignRewarder rewarder = new ForeignRewarder(
                    address.bootstrapServers(),
                    address.registry(),
                    address.config().run().identity(),
                    "stock");
            threads.start(new Role("foreign generator", generator, generator::stop));
            threads.start(new Role("foreign rewarder", rewarder, rewarder::stop));
            return schemas::close;
        });
    }

    @Test
    void shouldTrainOnRolloutsAndRewardsOfTheExamplesInPython() throws Exception {
        PythonInterpreter python = python();
        train("python", (address, threads) -> {
            Process killed = generator(python, address, "killed");
            Process rewarder = rewarder(python, address);
            awaitUntil(
                    threads,
                    "the first rollouts of the Python generator",
                    () -> printed("killed").contains("version 0  rollouts"));
            killed.destroyForcibly().waitFor();
            Process second = generator(python, address, "second");
            return () -> {
                second.destroyForcibly().waitFor();
                rewarder.destroyForcibly().waitFor();
            };
        });
    }

    private void train(String id, Partners partners) throws Exception {
        MillraceConfig config = new ConfigLayers()
                .set("run.id=foreign")
                .set("topology.join.reward=true")
                .set("admission.batch_sequences=" + SEQUENCES)
                .set("topology.batch.sequences=" + SEQUENCES)
                .set("learner.max_steps=" + STEPS)
                .resolve();
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"));
                RunLog log = config.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()), config.topics(), Optional.empty())) {
            HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
            new RegistryHttpApi(log.registryContents().orElseThrow()).mount(server::createContext);
            server.start();
            try (Pipeline pipeline =
                            new Pipeline(config, log.connection(), new SimpleMeterRegistry(), Clock.systemUTC());
                    RoleThreads threads = new RoleThreads(TrainProcess.PATIENCE)) {
                Role learner = pipeline.learner();
                threads.start(learner);
                threads.start(pipeline.admission());
                threads.start(pipeline.scorer(ScorerPurpose.LEARNER));
                threads.start(pipeline.topology(directory.resolve("streams")));
                Address address = new Address(
                        broker.bootstrapServers(),
                        "http://127.0.0.1:" + server.getAddress().getPort(),
                        log.connection(),
                        config);
                Ending ending = partners.start(address, threads);
                try {
                    awaitUntil(threads, STEPS + " steps", () -> threads.hasEnded(learner));
                } finally {
                    ending.end();
                }
                threads.stop();
                assertThat(threads.failure()).isEmpty();
            } finally {
                server.stop(0);
            }
            requireAllIsTheirs(log, id);
        }
    }

    private static void requireAllIsTheirs(RunLog log, String id) {
        LogConnection connection = log.connection();
        Account account = new LedgerReader(connection).read(TrainProcess.PATIENCE);
        assertThat(account.steps()).extracting(TrainingStep::getVersion).containsExactly(1L, 2L, 3L);
        assertThat(account.balance().addsUp()).isTrue();

        Map<String, Rollout> rollouts = new HashMap<>();
        for (Rollout rollout : read(connection, connection.topics().rollouts(), Rollout.class)) {
            assertThat(rollout.getGeneratorId()).isEqualTo(id);
            assertThat(rollouts.put(rollout.getRolloutId(), rollout))
                    .as("%s is sampled once, despite the kills", rollout.getRolloutId())
                    .isNull();
        }
        List<Trajectory> trajectories = read(connection, connection.topics().trajectories(), Trajectory.class);
        assertThat(trajectories).hasSizeGreaterThanOrEqualTo(STEPS * SEQUENCES);
        for (Trajectory trajectory : trajectories) {
            Rollout rollout = rollouts.get(trajectory.getRolloutId());
            assertThat(trajectory.getReward())
                    .as("the rewarder's reward of %s", trajectory.getRolloutId())
                    .isEqualTo(judged(rollout));
            assertThat(trajectory.getRewardComponents()).containsKeys("environment", "variety");
        }
    }

    /** As the examples judge: what the environment gave, and a tenth for every token that differs from its neighbour. */
    static double judged(Rollout rollout) {
        int[] tokens = PackedInts.toArray(rollout.getResponseTokens());
        int different = 0;
        for (int i = 1; i < tokens.length; i++) {
            different += tokens[i] == tokens[i - 1] ? 0 : 1;
        }
        return rollout.getReward() + 0.1 * different;
    }

    static <T extends SpecificRecord> List<T> read(LogConnection connection, String topic, Class<T> type) {
        var deserializer = AvroSerde.of(type, connection.registry()).deserializer();
        List<T> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                connection.consumer(Map.of("isolation.level", "read_committed")),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                    .map(info -> new TopicPartition(topic, info.partition()))
                    .toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    records.add(deserializer.deserialize(topic, record.value()));
                }
            }
        }
        return records;
    }

    private static Process generator(PythonInterpreter python, Address address, String name) throws IOException {
        return python.example(name, "generate.py", address.bootstrapServers(), "foreign", "python", "numpy");
    }

    private static Process rewarder(PythonInterpreter python, Address address) throws IOException {
        return python.start(
                "rewarder",
                Map.of(),
                EXAMPLES.resolve("reward/reward.py").toString(),
                "--bootstrap-servers",
                address.bootstrapServers(),
                "--registry",
                address.registry(),
                "--prefix",
                "millrace.",
                "--run",
                "foreign",
                "--id",
                "python");
    }

    private String printed(String name) {
        return new PythonInterpreter("", directory).printed(name);
    }

    private void awaitUntil(RoleThreads threads, String what, BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(300);
        while (!condition.getAsBoolean()) {
            assertThat(threads.failure()).isEmpty();
            assertThat(System.nanoTime())
                    .as(() -> "waited for " + what + "; the programs printed " + all())
                    .isLessThan(deadline);
            LockSupport.parkNanos(20_000_000);
        }
    }

    private String all() {
        StringBuilder text = new StringBuilder();
        for (String name : List.of("killed", "second", "rewarder")) {
            text.append(name).append(": ").append(printed(name)).append('\n');
        }
        return text.toString();
    }

    private PythonInterpreter python() throws Exception {
        return PythonInterpreter.with(directory, "confluent_kafka.avro", "avro", "numpy");
    }
}
