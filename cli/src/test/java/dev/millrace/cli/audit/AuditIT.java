package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.Main;
import dev.millrace.cli.correct.ParquetRows;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Fix;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.Alarm;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.retrain.TrialLimit;
import dev.millrace.report.Lines;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.runtime.report.Treatment;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.topology.task.LogStalls;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.LedgerRows;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/**
 * One run with everything that can become of a rollout, asked about by the commands as a user types them: a real broker and
 * a real topology; generator, scorer and learner are the test. The tests are one story, in order.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class AuditIT {
    private static final Duration PATIENCE = Duration.ofMinutes(5);

    private record Said(int status, String out, String err) {
        JsonNode json() throws Exception {
            return new ObjectMapper().readTree(out);
        }
    }

    @TempDir
    private static Path folder;

    private EmbeddedBroker broker;
    private CraftedRun run;

    private Said millrace(String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--bootstrap-servers", broker.bootstrapServers(), "--run", CraftedRun.RUN));
        return said(all);
    }

    private static Said said(List<String> all) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int status = command.execute(all.toArray(String[]::new));
        assertThat(out.toString().lines())
                .allMatch(line -> line.length() <= Lines.width() || all.contains("--json"), "80 columns");
        return new Said(status, out.toString(), err.toString());
    }

    private void withTopology(List<String> settings, String what, Callable<Boolean> until) throws Exception {
        ObjectNode tree = ConfigTree.empty();
        settings.forEach(setting -> ConfigTree.set(tree, setting));
        MillraceConfig config = ConfigBinder.bind(MillraceConfig.defaults(), tree);
        TopologyRunner topology = new TopologyRunner(
                config.topology(),
                config.algorithm(),
                run.connection(),
                folder.resolve("state"),
                new SimpleMeterRegistry());
        CompletableFuture<Void> ended = CompletableFuture.runAsync(topology::run);
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (!until.call()) {
            assertThat(System.nanoTime()).as("waited too long for " + what).isLessThan(deadline);
            assertThat(ended).isNotDone();
            LockSupport.parkNanos(100_000_000);
        }
        topology.stop();
        ended.get(300, TimeUnit.SECONDS);
    }

    private static List<String> settings(int batch, String... more) {
        List<String> all = new ArrayList<>(List.of(
                "admission.group_size=2",
                "topology.groups.min_size=2",
                "admission.batch_sequences=" + batch,
                "topology.batch.sequences=" + batch));
        all.addAll(List.of(more));
        return all;
    }

    private JsonNode ledger() throws Exception {
        Said said = millrace("ledger", "--json");
        assertThat(said.status).as(said.toString()).isZero();
        return said.json();
    }

    private List<String> sentencesOfDoctor() throws Exception {
        return millrace("doctor", "--json").json().path("findings").findValuesAsText("sentence");
    }

    @BeforeAll
    void write() throws Exception {
        broker = EmbeddedBroker.start(folder.resolve("broker"));
        try (CraftedRun before = new CraftedRun(broker.bootstrapServers(), 0)) {
            run = new CraftedRun(broker.bootstrapServers(), 1);
            before.send(before.rollout(0, 0, 0)); // by one who has not noticed
        }
        run.version(0);
        for (int ordinal = 0; ordinal < 6; ordinal++) {
            run.prompt(ordinal);
        }
        for (int ordinal = 0; ordinal < 2; ordinal++) {
            run.sendScored(run.rollout(ordinal, 0, 0));
            run.sendScored(run.rollout(ordinal, 1, 1));
        }
        run.sendScored(run.rollout(2, 0, 1)); // its sibling never comes
        run.sendScored(run.rollout(3, 0, 5)); // more than what will be allowed
        run.sendScored(run.rollout(3, 1, 4));
        run.send(run.rollout(4, 0, 1)); // its score never comes
        run.send(run.rollout(0, 0, 0)); // a repetition
        run.send(run.topics().rollouts(), "x", "garbage".getBytes(StandardCharsets.UTF_8));
        withTopology(
                settings(
                        4,
                        "topology.ingress.max_reward=2",
                        "topology.join.unscored_after_ms=1500",
                        "topology.join.orphan_after_ms=1500",
                        "topology.groups.deadline_ms=1500"),
                "all decisions of the first topology",
                () -> {
                    JsonNode all = ledger().path("all");
                    return all.at("/dropped/unscored").asInt() == 1
                            && all.at("/dropped/group-short").asInt() == 1
                            && all.at("/dropped/duplicate").asInt() == 1
                            && all.at("/in_flight/waiting_for_step").asInt() == 4
                            && all.at("/dead_lettered/reward").asInt() == 2;
                });
    }

    @AfterAll
    void close() {
        if (run != null) {
            run.close();
        }
        broker.close();
    }

    @Test
    @Order(1)
    void shouldFindEveryRolloutInOnePlaceWhileABatchWaits() throws Exception {
        JsonNode ledger = ledger();
        assertThat(ledger.path("adds_up").asBoolean()).isTrue();
        assertThat(ledger.path("complete").asBoolean()).isTrue();
        assertThat(ledger.path("all").toString())
                .isEqualTo(
                        "{\"generated\":11,\"trained\":0,\"masked\":{},"
                                + "\"dropped\":{\"duplicate\":1,\"group-short\":1,\"unscored\":1},\"dead_lettered\":{\"reward\":2,\"unreadable\":1,\"wrong-epoch\":1},"
                                + "\"in_flight\":{\"waiting_for_score\":0,\"waiting_for_batch\":0,\"waiting_for_step\":4},\"expired\":0,\"superseded\":0}");
        assertThat(ledger.path("versions")).hasSize(3); // garbage, version 0 of epoch 0, version 0 of epoch 1
        assertThat(millrace("ledger").out)
                .contains("11 generated = 0 trained + 0 masked + 3 dropped + 4 dead-lettered + 4 in")
                .contains("epoch 1: 0")
                .contains("It adds up.");
        assertThat(millrace("ledger", "--policy-version", "0", "--json")
                        .json()
                        .at("/all/generated")
                        .asInt())
                .isEqualTo(10);
        assertThat(millrace("ledger", "--from-version", "3", "--to-version", "1").status)
                .isEqualTo(2);
    }

    @Test
    @Order(2)
    void shouldCountAsTrainedWhatTheStepTrainedOn() throws Exception {
        run.step(0, 4);
        assertThat(ledger().at("/all/trained").asInt()).isEqualTo(4);
        assertThat(ledger().at("/all/in_flight/waiting_for_step").asInt()).isZero();
    }

    @Test
    @Order(3)
    void shouldTellTheWayOfARolloutThatWasTrainedOn() throws Exception {
        Said said = millrace("trace", "1-0/1", "--json");
        assertThat(said.status).as(said.err).isZero();
        assertThat(said.json().path("fate").asText()).isEqualTo("trained");
        assertThat(said.json().findValuesAsText("event"))
                .containsExactlyInAnyOrder("prompt released", "sampled", "scored", "joined", "batched", "trained");
        Said text = millrace("trace", "1-0/1");
        assertThat(text.out)
                .contains("rollout 1-0/1")
                .contains("trained: batch 0, version 1")
                .contains("batches-0@")
                .contains("assembled at version 0");
    }

    @Test
    @Order(4)
    void shouldTellWhatBecameOfThoseThatWereNot() {
        assertThat(millrace("trace", "1-2/0").out)
                .contains("dropped: group-short")
                .contains("fewer than min_size 2");
        assertThat(millrace("trace", "1-4/0").out).contains("dropped: unscored");
        assertThat(millrace("trace", "1-3/0").out).contains("refused: reward");
        assertThat(millrace("trace", "1-0").out)
                .contains("trained: batch 0, version 1")
                .doesNotContain("in flight");
        assertThat(millrace("trace", "1-0/0", "--whole").out).contains("duplicate");
    }

    @Test
    @Order(5)
    void shouldNameTheNearestOfWhatIsNotThere() {
        Said sample = millrace("trace", "1-0/7");
        assertThat(sample.status).isEqualTo(5);
        assertThat(sample.err).contains("there is no rollout 1-0/7").contains("on the log: 0, 1");
        Said group = millrace("trace", "1-99");
        assertThat(group.status).isEqualTo(5);
        assertThat(group.err).contains("the newest group of the run is 1-5");
        Said notSampled = millrace("trace", "1-5");
        assertThat(notSampled.status).isEqualTo(5);
        assertThat(notSampled.err).contains("none of them has been sampled yet");
    }

    @Test
    @Order(6)
    void shouldListAndShowWhatWasRefused() throws Exception {
        JsonNode all = millrace("dead-letters", "list", "--json").json();
        assertThat(all.path("count").asInt()).isEqualTo(4);
        assertThat(all.path("still_refused").toString()).isEqualTo("{\"reward\":2,\"unreadable\":1,\"wrong-epoch\":1}");
        Said rewards = millrace("dead-letters", "list", "--reason", "reward");
        assertThat(rewards.out)
                .contains("reward (reward)")
                .contains("rollout 1-3/0")
                .contains("2 refused records, 0 of them redriven");
        assertThat(millrace("dead-letters", "list", "--source", "scores", "--json")
                        .json()
                        .path("count")
                        .asInt())
                .isZero();

        for (JsonNode letter : all.path("letters")) {
            Said shown = millrace("dead-letters", "show", letter.path("letter").asText(), "--json");
            if (letter.path("reason").asText().equals("unreadable")) {
                assertThat(shown.json().path("hex").asText()).isEqualTo("67617262616765");
                assertThat(millrace(
                                        "dead-letters",
                                        "show",
                                        letter.path("letter").asText())
                                .out)
                        .contains("67 61 72 62 61 67 65")
                        .contains("garbage");
            } else {
                assertThat(shown.json().at("/record/rollout_id").asText())
                        .isEqualTo(letter.path("rollout_id").asText());
                assertThat(shown.json().at("/record/response_tokens").toString())
                        .isEqualTo("[3,4,5]");
            }
        }
        JsonNode first = all.path("letters").path(0);
        String source = "rollouts-" + first.at("/source/partition").asText() + "@"
                + first.at("/source/offset").asText();
        assertThat(millrace("dead-letters", "show", source, "--json").json().path("letter"))
                .isEqualTo(first.path("letter"));
        assertThat(millrace("dead-letters", "show", "4711").status).isEqualTo(5);
    }

    @Test
    @Order(7)
    void shouldRedriveOnceAndSayWhyNotTheRest() throws Exception {
        assertThat(millrace("dead-letters", "redrive").status).isEqualTo(2);
        assertThat(millrace("dead-letters", "redrive", "--reason", "reward", "--dry-run").out)
                .contains("2 records would be redriven: 2 on rollouts");
        assertThat(ledger().path("redriven").asInt()).isZero();

        Said put = millrace("dead-letters", "redrive", "--reason", "reward");
        assertThat(put.status).as(put.toString()).isZero();
        assertThat(put.out).contains("2 records are redriven: 2 on rollouts");
        Said again = millrace("dead-letters", "redrive", "--reason", "reward");
        assertThat(again.status).isEqualTo(4);
        assertThat(again.out).contains("0 records").contains("it was already redriven");
        Said foreign = millrace("dead-letters", "redrive", "--reason", "wrong-epoch");
        assertThat(foreign.status).isEqualTo(4);
        assertThat(foreign.out).contains("it is of another epoch than 1");
        assertThat(millrace("dead-letters", "redrive", "4711").status).isEqualTo(5);

        JsonNode ledger = ledger();
        assertThat(ledger.path("redriven").asInt()).isEqualTo(2);
        assertThat(ledger.at("/all/generated").asInt()).isEqualTo(11);
        assertThat(ledger.at("/all/dead_lettered/reward").isMissingNode()).isTrue();
        assertThat(ledger.at("/all/in_flight/waiting_for_score").asInt()).isEqualTo(2);
    }

    @Test
    @Order(8)
    void shouldCountWhatWasRedrivenAndTrainedOnOnceAsTrained() throws Exception {
        for (JsonNode letter : millrace("dead-letters", "list", "--reason", "reward", "--json")
                .json()
                .path("letters")) {
            Rollout rollout = run.rollout(3, letter.path("rollout_id").asText().endsWith("0") ? 0 : 1, 0);
            run.scoreAt(
                    rollout,
                    letter.at("/source/partition").asInt(),
                    letter.path("redriven_offset").asLong());
        }
        withTopology(
                settings(2),
                "the batch of what was redriven",
                () -> ledger().at("/all/in_flight/waiting_for_step").asInt() == 2);
        run.step(1, 2);

        JsonNode ledger = ledger();
        assertThat(ledger.path("all").toString())
                .isEqualTo(
                        "{\"generated\":11,\"trained\":6,\"masked\":{},"
                                + "\"dropped\":{\"duplicate\":1,\"group-short\":1,\"unscored\":1},\"dead_lettered\":{\"unreadable\":1,\"wrong-epoch\":1},"
                                + "\"in_flight\":{\"waiting_for_score\":0,\"waiting_for_batch\":0,\"waiting_for_step\":0},\"expired\":0,\"superseded\":0}");
        Said trace = millrace("trace", "1-3/0", "--json");
        assertThat(trace.json().path("fate").asText()).isEqualTo("trained");
        assertThat(trace.json().findValuesAsText("event"))
                .contains("refused", "batched", "trained")
                .filteredOn("sampled"::equals)
                .hasSize(2);
    }

    private AuditedRun opened() {
        return AuditedRun.open(
                recorded -> new ConfigLayers()
                        .begunWith(recorded)
                        .set("run.bootstrap_servers", broker.bootstrapServers())
                        .set("run.id", CraftedRun.RUN),
                null,
                false,
                "--run " + CraftedRun.RUN,
                true);
    }

    @Test
    @Order(9)
    void shouldTryAFixOnTheTopicsOfARunThatMayGoOn() throws Exception {
        try (AuditedRun audited = opened()) {
            Treatment treatment = Treatment.of(
                    new LiveRun(audited.connection(), audited.recorded()),
                    audited.config(),
                    new Diagnosis(List.of(new Branch(Cause.TOKEN_DRIFT, List.of(), Fix.REJECT)), Set.of()),
                    new TrialLimit(TrialLimit.DEFAULT.batches(), PATIENCE),
                    2);
            assertThat(treatment.untried()).isEmpty();
            assertThat(treatment.trial().orElseThrow().batches().count()).isPositive();
            assertThat(treatment.trial().orElseThrow().patched())
                    .hasSize(3)
                    .allMatch(course -> course.tokens().of() > 0);
        }
    }

    /** While the run may go on: what the page's index gathers from the topics is what the ledger says of them. */
    @Test
    @Order(9)
    void shouldShowOnThePageWhatTheLedgerSays() throws Exception {
        RunSource source = new RunSource.Cluster(CraftedRun.RUN, this::opened, "--run " + CraftedRun.RUN);
        try (ViewedRuns runs = new ViewedRuns(List.of(source), null, folder.resolve("indexes"))) {
            ViewedRun viewed = runs.run(CraftedRun.RUN).orElseThrow();
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (!isIndexed(viewed)) {
                assertThat(System.nanoTime())
                        .as("waited too long for the index: " + viewed.progress() + " " + viewed.problem())
                        .isLessThan(deadline);
                LockSupport.parkNanos(20_000_000);
            }
            JsonNode index = LedgerRows.of(viewed.index().orElseThrow());
            assertThat(index.path("ends").findValuesAsText("state"))
                    .containsExactlyInAnyOrder("trained", "dropped", "dropped", "dropped", "refused");
            assertThat(index.path("redriven").asInt()).isEqualTo(2);
            for (JsonNode end : index.path("ends")) {
                assertThat(end.path("rollouts").asInt())
                        .as(end.toString())
                        .isEqualTo(end.path("state").asText().equals("trained") ? 6 : 1);
            }
        }
    }

    private static boolean isIndexed(ViewedRun viewed) {
        return viewed.progress().isWhole()
                && viewed.index()
                        .orElseThrow()
                        .numbers("SELECT count(*) FROM step")
                        .equals(List.of(2L))
                && viewed.index()
                        .orElseThrow()
                        .numbers("SELECT count(*) FROM letter WHERE redriven >= 0")
                        .equals(List.of(2L));
    }

    @Test
    @Order(10)
    void shouldCountCopiesOfDecisionsInALineOfTheirOwn() throws Exception {
        JsonNode before = ledger();
        int outcomes = run.copyAll(run.topics().outcomes());
        int batches = run.copyAll(run.topics().batches());
        int steps = run.copyAll(run.topics().trainingLog());
        assertThat(List.of(outcomes, batches, steps))
                .as("two of the outcomes are about scores, which the ledger does not count")
                .containsExactly(5, 2, 2);

        JsonNode ledger = ledger();
        assertThat(ledger.path("copies").toString()).isEqualTo("{\"batches\":2,\"outcomes\":3,\"training-log\":2}");
        assertThat(ledger.path("all")).isEqualTo(before.path("all"));
        assertThat(millrace("ledger").out)
                .contains("copies      duplicate records, each counted once:")
                .contains("It adds up.");

        JsonNode trace = millrace("trace", "1-0/1", "--whole", "--json").json();
        assertThat(trace.findValuesAsText("event"))
                .containsExactlyInAnyOrder("prompt released", "sampled", "scored", "joined", "batched", "trained");
        assertThat(trace.path("copies"))
                .hasSize(2)
                .extracting(JsonNode::asText)
                .satisfiesExactlyInAnyOrder(
                        place -> assertThat(place).startsWith("batches-0@"),
                        place -> assertThat(place).startsWith("training-log-0@"));
        assertThat(millrace("trace", "1-2/0", "--whole").out)
                .contains("dropped: group-short")
                .contains("copies      skipped exact duplicates: outcomes-");

        Said doctor = millrace("doctor", "--json");
        assertThat(doctor.json().path("findings").findValuesAsText("sentence"))
                .contains("duplicate records, each counted once: outcomes 3, batches 2, training-log 2");
    }

    @Test
    @Order(11)
    void shouldCountRecordsThatNameNoPlaceOrWereRefusedForNothing() throws Exception {
        JsonNode before = ledger();
        run.sendStrays();
        JsonNode strays = ledger();
        assertThat(strays.path("strays").toString()).isEqualTo("{\"batches\":2,\"outcomes\":1,\"scores\":1}");
        assertThat(strays.path("all")).isEqualTo(before.path("all"));
        assertThat(millrace("ledger").out)
                .contains("strays      records that name no offset of the topic, not counted:")
                .contains("It adds up.");
        assertThat(millrace("doctor", "--json").json().path("findings").findValuesAsText("subject"))
                .contains("strays")
                .doesNotContain("ledger");
        assertThat(millrace("repair").err).isEmpty();

        run.sendRefused();
        JsonNode refused = ledger();
        assertThat(refused.path("all")).isEqualTo(before.path("all"));
        assertThat(refused.path("other_dead_letters").toString())
                .isEqualTo("{\"millrace.crafted.batches\":1,\"millrace.crafted.training-log\":1}");
        assertThat(millrace("repair").out).doesNotContain("skip-batch").doesNotContain("1000000");
        assertThat(millrace("trace", "1-0/1", "--whole").status).isZero();
        assertThat(millrace("trace", "1-3/0", "--whole").out).doesNotContain("batch 51", "batch 52");
    }

    @Test
    @Order(11)
    void shouldNotCountWhatAProcessHadNotCommittedWhenItWasKilled() throws Exception {
        try (KafkaProducer<byte[], byte[]> killed = new KafkaProducer<>(
                run.connection().producer(Map.of("transactional.id", "killed")),
                new ByteArraySerializer(),
                new ByteArraySerializer())) {
            killed.initTransactions();
            killed.beginTransaction();
            Rollout rollout = run.rollout(0, 0, 0);
            killed.send(new ProducerRecord<>(
                            run.topics().rollouts(),
                            rollout.getGroupId().getBytes(StandardCharsets.UTF_8),
                            run.encode(run.topics().rollouts(), Rollout.class, rollout)))
                    .get();
            assertThat(ledger().at("/all/generated").asInt()).isEqualTo(11);

            LogConnection connection = run.connection();
            String abort = connection.command("repair --do abort-transaction");
            try (LogStalls stalls = new LogStalls(
                    new LogReader(connection, Map.of("group.id", "looks")).consumer(),
                    new LogReader(connection, Map.of("isolation.level", "read_uncommitted")).consumer(),
                    Set.of(run.topics().rollouts()),
                    60_000,
                    connection.alarms(),
                    abort,
                    "")) {
                stalls.check(0);
                stalls.check(60_000);
                assertThat(connection.alarms().active())
                        .extracting(Alarm::name, Alarm::remedy)
                        .containsExactly(tuple("open-transaction", abort));

                Said aborted = said(new ArrayList<>(List.of(abort.split(" ")).subList(1, abort.split(" ").length)));
                assertThat(aborted.status).as(aborted.toString()).isZero();
                assertThat(aborted.out).contains("1 open transactions were aborted");
                stalls.check(60_001);
                assertThat(connection.alarms().active()).isEmpty();
            }
        }
        assertThat(ledger().at("/all/generated").asInt()).isEqualTo(11);
    }

    @Test
    @Order(12)
    void shouldSayThatDeletedDecisionsAreDeletedAndNotThatRolloutsAreMissing() throws Exception {
        try (var admin = Admin.create(run.connection().admin())) {
            var partition = new TopicPartition(run.topics().batches(), 0);
            long second = endOf(admin, partition);
            admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(second)))
                    .all()
                    .get();
        }
        JsonNode ledger = ledger();
        assertThat(ledger.path("complete").asBoolean()).isFalse();
        assertThat(ledger.path("gaps").toString()).contains("earlier decisions are deleted");
        assertThat(ledger.at("/all/expired").asInt()).isEqualTo(6);
        assertThat(millrace("ledger").out).contains("It adds up, as far as the log goes back.");
    }

    private static long endOf(Admin admin, TopicPartition partition) throws Exception {
        return admin.listOffsets(Map.of(partition, OffsetSpec.latest()))
                .partitionResult(partition)
                .get()
                .offset();
    }

    @Test
    @Order(13)
    void shouldDiagnoseTheRun() throws Exception {
        Said said = millrace("doctor", "--json");
        assertThat(said.status).as(said.toString()).isEqualTo(4); // 2 of 11 rollouts are refused for good
        assertThat(said.json().path("findings").findValuesAsText("subject"))
                .contains("refused", "dropped", "retention");
        assertThat(millrace("doctor").out).contains("The run needs attention.");

        run.version(1_000_000);
        assertThat(sentencesOfDoctor())
                .contains("a manifest names version 1000000, and the run's chain ends with version 0; it is ignored");
        run.deleteVersion(1_000_000); // as a learner does
        assertThat(sentencesOfDoctor()).noneMatch(sentence -> sentence.contains("1000000"));
    }

    @Test
    @Order(14)
    void shouldFailAndNameWhatContradictsItself() throws Exception {
        run.step(0, 4);
        Said said = millrace("ledger");
        assertThat(said.status).isEqualTo(4);
        assertThat(said.out)
                .contains("It does NOT add up: 1 contradiction:")
                .contains("batch 0 of epoch 1 was trained on twice");
    }

    @Test
    @Order(99)
    void shouldAnswerWhateverNumbersAreOnTheLog() throws Exception {
        int written = run.extremes(run.topics().outcomes(), Outcome.class)
                + run.extremes(run.topics().trajectories(), Trajectory.class)
                + run.extremes(run.topics().scores(), Score.class)
                + run.extremes(run.topics().rollouts(), Rollout.class)
                + run.extremes(run.topics().trainingLog(), TrainingStep.class)
                + run.extremes(run.topics().policyVersions(), PolicyVersion.class)
                + run.extremes(run.topics().prompts(), PromptRequest.class);
        assertThat(written).isGreaterThan(1_000);
        for (String command : List.of("ledger", "doctor", "repair")) {
            Said said = ofTheArchive(command, "--topic-prefix", CraftedRun.PREFIX);
            assertThat(said.status).as("%s: %s", command, said).isIn(0, 4);
            assertThat(said.err).as(command).isEmpty();
        }
        Said trace = ofTheArchive("trace", "1-0/0", "--topic-prefix", CraftedRun.PREFIX);
        assertThat(trace.status).as("%s", trace).isIn(0, 4);
    }

    /** With dead letters, copies and transactions that were given up; nothing but the lags of consumers needs a broker. */
    @Test
    @Order(11)
    void shouldAnswerByTheFilesOfABrokerWhatTheBrokerAnswers() throws Exception {
        run.giveUp(List.of(
                run.topics().trainingLog(),
                run.topics().batches(),
                run.topics().outcomes(),
                run.topics().deadLetters(),
                run.topics().scores(),
                run.topics().rollouts()));
        List<List<String>> questions = List.of(
                List.of("ledger"),
                List.of("ledger", "--policy-version", "0"),
                List.of("trace", "1-0/0"),
                List.of("trace", "1-0/1", "--whole"),
                List.of("trace", "1-2"),
                List.of("trace", "1-3/0"),
                List.of("trace", "1-4/0"),
                List.of("trace", "7-7/7"),
                List.of("dead-letters", "list"),
                List.of("dead-letters", "show", "0"),
                List.of("doctor"));
        List<JsonNode> byTheBroker = new ArrayList<>();
        for (List<String> question : questions) {
            byTheBroker.add(answer(millrace(inJson(question).toArray(String[]::new))));
        }
        assertThat(byTheBroker.get(8).at("/out/letters")).isNotEmpty();

        run.close();
        broker.close();
        try {
            ConfigLayers layers =
                    new ConfigLayers().set("run.id", CraftedRun.RUN).set("run.topic_prefix", CraftedRun.PREFIX);
            Files.writeString(folder.resolve("config.yaml"), ConfigTree.write(ConfigBinder.unbind(layers.resolve())));
            Path ended = folder.resolve("broker").resolve(".kafka_cleanshutdown");
            FileTime endedAt = Files.getLastModifiedTime(ended);
            for (int i = 0; i < questions.size(); i++) {
                List<String> question = inJson(questions.get(i));
                question.addAll(List.of("--run-dir", folder.toString()));
                assertThat(answer(said(question)))
                        .as(String.join(" ", questions.get(i)))
                        .isEqualTo(byTheBroker.get(i));
            }
            assertThat(Files.getLastModifiedTime(ended))
                    .as("no broker was started")
                    .isEqualTo(endedAt);
        } finally {
            broker = EmbeddedBroker.start(folder.resolve("broker")); // for the tests that follow
            run = new CraftedRun(broker.bootstrapServers(), 1);
        }
    }

    private static List<String> inJson(List<String> question) {
        List<String> all = new ArrayList<>(question);
        all.add("--json");
        return all;
    }

    /** Its JSON, or what it refuses with, without what a clock or a consumer's lag goes into. */
    private static JsonNode answer(Said said) throws Exception {
        ObjectNode answer = new ObjectMapper().createObjectNode().put("status", said.status);
        answer.put("err", said.err.replaceAll(" \\(read .*", ""));
        if (!said.out.isEmpty()) {
            answer.set("out", said.json());
        }
        if (answer.at("/out/findings") instanceof ArrayNode findings) {
            findings.removeIf(finding -> Set.of("lag", "waiting", "progress")
                    .contains(finding.path("subject").asText()));
        }
        return answer;
    }

    private Said ofTheArchive(String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--bootstrap-servers", broker.bootstrapServers()));
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int status = Main.commandLine()
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(all.toArray(String[]::new));
        return new Said(status, out.toString(), err.toString());
    }

    /** What an earlier commit recorded and archived: its schemas, its claim and its configuration are those of then. */
    @Test
    @Order(15)
    @Tag("faults")
    void shouldImportAnArchiveOfAnEarlierContractAndAnswerQuestionsAboutItsTopics() throws Exception {
        Path archive = Path.of("src", "test", "resources", "archives", "contract-3");
        assertThat(ofTheArchive("import", archive.toString()).out)
                .contains("every file in " + archive + " matches its hash", "1,519 offsets of run recorded are on ");

        JsonNode ledger =
                ofTheArchive("ledger", "--json", "--topic-prefix", "millrace.").json();
        assertThat(ledger.path("adds_up").asBoolean()).isTrue();
        assertThat(ledger.at("/all/generated").asInt()).isEqualTo(372);
        assertThat(ledger.at("/all/trained").asInt()).isEqualTo(158);
        assertThat(ledger.at("/all/masked/rollout_correction").asInt()).isEqualTo(34);
        assertThat(ledger.at("/all/dropped/zero-variance").asInt()).isEqualTo(84);
        assertThat(ledger.at("/all/in_flight/waiting_for_step").asInt()).isEqualTo(96);

        Path tables = folder.resolve("tables");
        Path ofTheLog = folder.resolve("tables-of-the-log");
        assertThat(ofTheArchive("export", "--topic-prefix", "millrace.", "--parquet", "--to", ofTheLog.toString())
                        .status)
                .isZero();
        assertThat(Main.commandLine()
                        .execute("export", "--archive", archive.toString(), "--parquet", "--to", tables.toString()))
                .isZero();
        for (String table : List.of("rollouts.parquet", "tokens.parquet", "steps.parquet")) {
            assertThat(ofTheLog.resolve(table)).hasSameBinaryContentAs(tables.resolve(table));
        }
        Map<String, String> fates = Map.of("waits for its step", "in flight");
        Set<String> outcomes = new HashSet<>();
        try (ParquetRows rows = new ParquetRows(tables.resolve("rollouts.parquet"))) {
            for (ObjectNode row = rows.next(); row != null; row = rows.next()) {
                String outcome = row.path("outcome").asText();
                if (outcomes.add(outcome)) {
                    String id = row.path("rollout_id").asText();
                    assertThat(ofTheArchive("trace", id, "--json", "--topic-prefix", "millrace.")
                                    .json()
                                    .path("fate")
                                    .asText())
                            .as(id)
                            .isEqualTo(fates.getOrDefault(outcome, outcome));
                }
            }
        }
        assertThat(outcomes).containsExactlyInAnyOrder("trained", "masked", "dropped", "waits for its step");

        assertThat(ofTheArchive("doctor", "--topic-prefix", "millrace.").out)
                .contains("run recorded, topics millrace.*, 6 steps", "Nothing is broken or critical.");
        assertThat(ofTheArchive("replay", "--topic-prefix", "millrace.").out)
                .contains("the replay reproduced every record of the run byte for byte");
        Said repair = ofTheArchive("repair", "--topic-prefix", "millrace.");
        assertThat(repair.status).isEqualTo(4);
        assertThat(repair.out)
                .as("it was archived without weights")
                .contains("version-lost: version 6, the newest, cannot be read", "no repair is possible on this log");
    }
}
