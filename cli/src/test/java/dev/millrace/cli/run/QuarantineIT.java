package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.cli.Main;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.Alarm;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.scorer.ScorerPurpose;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** A run with one lying generator and one that starts to misreport, and an operator who follows the alarms. */
@Timeout(900)
class QuarantineIT {

    @TempDir
    private Path directory;

    @Test
    void shouldGoOnWithoutTheLiarAndWaitWhileTheOnlyOtherGeneratorIsInQuarantineUntilTheCommandIsEntered()
            throws Exception {
        MillraceConfig config = new ConfigLayers()
                .set("run.id=sick")
                .set("admission.batch_sequences=64")
                .set("topology.batch.sequences=64")
                .set("admission.quarantine.difference_tokens=256")
                .resolve();
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"));
                RunLog log = config.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()), config.topics(), Optional.empty());
                Pipeline pipeline =
                        new Pipeline(config, log.connection(), new SimpleMeterRegistry(), Clock.systemUTC());
                PolicyFeed feed = new PolicyFeed(log.connection(), config.weights());
                RoleThreads threads = new RoleThreads(TrainProcess.PATIENCE)) {
            LogConnection connection = log.connection();
            threads.start(pipeline.learner());
            threads.start(pipeline.admission());
            threads.start(pipeline.scorer(ScorerPurpose.LEARNER));
            threads.start(pipeline.topology(directory.resolve("streams")));
            threads.start(pipeline.generator());
            awaitUntil(threads, "three versions", () -> newest(feed) >= 3);

            ForeignGenerator liar = new ForeignGenerator(
                    broker.bootstrapServers(), connection.registry(), connection, config, "liar", QuarantineIT::lied);
            Thread lying = new Thread(liar, "liar");
            lying.setDaemon(true);
            lying.start();
            awaitUntil(
                    threads,
                    "the alarm about the liar",
                    () -> alarm(connection, "liar").isPresent());
            Alarm found = alarm(connection, "liar").orElseThrow();
            assertThat(found.sentence())
                    .startsWith("its log-probs differ by ")
                    .contains(" nats on average from those of the versions it names, in ", " of 7 lots of ");
            assertThat(entered("millrace quarantine list "
                            + found.remedy().substring(found.remedy().indexOf("--"))))
                    .contains("liar")
                    .contains("log-probs")
                    .contains("1 generator is in quarantine.");
            long before = newest(feed);
            awaitUntil(threads, "versions of what the honest one samples", () -> newest(feed) > before + 2);
            liar.stop();
            lying.join();
            awaitUntil(threads, "the scores of the last that it sent", () -> scored(connection, "liar"));
            long heard = heardOfScorer(connection);
            awaitUntil(threads, "the scorer's next sums, which have them", () -> heardOfScorer(connection) > heard);
            assertThat(entered(found.remedy())).isEqualTo("The quarantine of generator liar is lifted.\n");
            awaitUntil(
                    threads,
                    "the end of the alarm",
                    () -> alarm(connection, "liar").isEmpty());

            List<ProducerRecord<byte[], byte[]>> burst = burst(connection);
            send(connection, burst);
            String honest = config.generator().id();
            awaitUntil(threads, "the alarm", () -> alarm(connection, honest).isPresent());
            Alarm alarm = alarm(connection, honest).orElseThrow();
            awaitUntil(threads, "records that are refused because of it", () -> {
                send(connection, burst.subList(0, 1));
                return refused(connection, "quarantined") > 0;
            });
            assertThat(entered("millrace quarantine list "
                            + alarm.remedy().substring(alarm.remedy().indexOf("--"))))
                    .contains(config.generator().id())
                    .contains("1 generator is in quarantine.");
            assertThat(threads.failure()).isEmpty();

            assertThat(entered(alarm.remedy()))
                    .isEqualTo(
                            "The quarantine of generator " + config.generator().id() + " is lifted.\n");
            long then = newest(feed);
            awaitUntil(threads, "versions of what was sampled since", () -> newest(feed) > then + 4);
            assertThat(alarm(connection, honest)).isEmpty();
            threads.stop();
            assertThat(threads.failure()).isEmpty();
            Account account = new LedgerReader(connection).read(TrainProcess.PATIENCE);
            assertThat(account.balance().addsUp()).isTrue();
            assertThat(account.steps())
                    .allSatisfy(step -> assertThat(step.getStalenessMax())
                            .isLessThanOrEqualTo(config.admission().eta()));
        }
    }

    private static Optional<Alarm> alarm(LogConnection connection, String generatorId) {
        return connection.alarms().active().stream()
                .filter(alarm -> alarm.name().equals("quarantine"))
                .filter(alarm -> alarm.subject().equals(generatorId))
                .findFirst();
    }

    /** The same rollout, with the same log-prob at each of its tokens. */
    private static Rollout lied(Rollout rollout) {
        float[] constant = new float[PackedFloats.length(rollout.getBehaviorLogProbs())];
        byte[] mask = PackedMask.toArray(rollout.getMask());
        for (int t = 0; t < constant.length; t++) {
            constant[t] = mask[t] == 1 ? -9 : 0;
        }
        return Rollout.newBuilder(rollout)
                .setBehaviorLogProbs(PackedFloats.of(constant))
                .build();
    }

    /** Whether the scorer has read all that a generator sent: what is compared after the quarantine was lifted counts again. */
    private static boolean scored(LogConnection connection, String generatorId) {
        var rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        var scores = AvroSerde.of(Score.class, connection.registry()).deserializer();
        String scoresTopic = connection.topics().scores();
        Set<String> scored = read(connection, scoresTopic).stream()
                .map(record -> scores.deserialize(scoresTopic, record.value()).getRolloutId())
                .collect(Collectors.toSet());
        String rolloutsTopic = connection.topics().rollouts();
        return read(connection, rolloutsTopic).stream()
                .map(record -> rollouts.deserialize(rolloutsTopic, record.value()))
                .filter(rollout -> rollout.getGeneratorId().equals(generatorId))
                .allMatch(rollout -> scored.contains(rollout.getRolloutId()));
    }

    private static long heardOfScorer(LogConnection connection) {
        var serving = AvroSerde.of(Serving.class, connection.registry()).deserializer();
        String topic = connection.topics().serving();
        return read(connection, topic).stream()
                .filter(record -> record.value() != null)
                .map(record -> serving.deserialize(topic, record.value()))
                .filter(record -> record.getRole() == ServerRole.SCORER)
                .mapToLong(Serving::getHeartbeatMs)
                .max()
                .orElse(0);
    }

    private static long newest(PolicyFeed feed) {
        return feed.newest().map(version -> version.getVersion()).orElse(-1L);
    }

    /** The command as a person enters it; what it prints. */
    private static String entered(String command) {
        List<String> words = Arrays.asList(command.split(" "));
        assertThat(words.get(0)).isEqualTo("millrace");
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine line = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        assertThat(line.execute(words.subList(1, words.size()).toArray(String[]::new)))
                .as(() -> command + "\n" + err)
                .isZero();
        return out.toString();
    }

    /** 600 copies of a rollout of the run, under names that nobody released, with log-probs that are no numbers. */
    private static List<ProducerRecord<byte[], byte[]>> burst(LogConnection connection) {
        String topic = connection.topics().rollouts();
        AvroSerde<Rollout> serde = AvroSerde.of(Rollout.class, connection.registry());
        Rollout real = serde.deserializer()
                .deserialize(topic, read(connection, topic).get(0).value());
        float[] none = new float[PackedFloats.length(real.getBehaviorLogProbs())];
        Arrays.fill(none, Float.NaN);
        List<ProducerRecord<byte[], byte[]>> burst = new ArrayList<>();
        for (int i = 0; i < 600; i++) {
            String group = "0-" + (90_000 + i);
            Rollout sick = Rollout.newBuilder(real)
                    .setGroupId(group)
                    .setRolloutId(group + "/0")
                    .setSampleIndex(0)
                    .setBehaviorLogProbs(PackedFloats.of(none))
                    .build();
            burst.add(new ProducerRecord<>(
                    topic,
                    group.getBytes(StandardCharsets.UTF_8),
                    serde.serializer().serialize(topic, sick)));
        }
        return burst;
    }

    private static void send(LogConnection connection, List<ProducerRecord<byte[], byte[]>> records) {
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                connection.producer(Map.of()), new ByteArraySerializer(), new ByteArraySerializer())) {
            records.forEach(producer::send);
        }
    }

    private static long refused(LogConnection connection, String reason) {
        return read(connection, connection.topics().deadLetters()).stream()
                .filter(record -> reason.equals(DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON)))
                .count();
    }

    private static List<ConsumerRecord<byte[], byte[]>> read(LogConnection connection, String topic) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                connection.consumer(Map.of("isolation.level", "read_committed", "auto.offset.reset", "earliest")),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                    .map(info -> new TopicPartition(topic, info.partition()))
                    .toList();
            consumer.assign(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                consumer.poll(Duration.ofMillis(100)).forEach(records::add);
            }
        }
        return records;
    }

    private static void awaitUntil(RoleThreads threads, String what, BooleanSupplier condition) {
        long deadline = System.nanoTime() + TrainProcess.PATIENCE.toNanos();
        for (long looked = System.nanoTime(); !condition.getAsBoolean(); looked = System.nanoTime()) {
            assertThat(threads.failure()).isEmpty();
            assertThat(System.nanoTime()).as(what).isLessThan(deadline);
            // most of the time is the roles': some looks read a whole topic
            LockSupport.parkNanos(Math.max(5_000_000, 2 * (System.nanoTime() - looked)));
        }
    }
}
