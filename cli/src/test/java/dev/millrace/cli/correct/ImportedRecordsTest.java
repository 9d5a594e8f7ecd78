package dev.millrace.cli.correct;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.Main;
import dev.millrace.cli.correct.RecordsImport.RecordFiles;
import dev.millrace.replay.BatchTrajectories;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.BuiltArchive;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

class ImportedRecordsTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    private Path folder;

    private final SplittableRandom random = new SplittableRandom(7);
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int millrace(String... arguments) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        return command.execute(arguments);
    }

    private String said() {
        return out.toString().replaceAll("\\s+", " ");
    }

    private int imported(String... more) {
        List<String> all = new ArrayList<>(List.of(
                "import",
                "--records",
                folder.resolve("dump") + "/*.jsonl",
                "--archive",
                archive().toString()));
        all.addAll(List.of(more));
        return millrace(all.toArray(String[]::new));
    }

    private Path archive() {
        return folder.resolve("archive");
    }

    private void file(String name, ObjectNode... lines) throws IOException {
        Path dump = Files.createDirectories(folder.resolve("dump"));
        Files.write(
                dump.resolve(name),
                Arrays.stream(lines).map(ObjectNode::toString).toList());
    }

    /** A sequence of three tokens; the second is context. */
    private static ObjectNode line(long step, String group, double reward) {
        ObjectNode line =
                JSON.createObjectNode().put("step", step).put("group", group).put("reward", reward);
        line.putArray("mask").add(1).add(0).add(1);
        line.putArray("behavior_log_probs").add(-1.0).addNull().add(-0.5);
        line.putArray("proximal_log_probs").add(-0.75).addNull().add(-0.5);
        return line;
    }

    private List<LearnerBatch> batches(ArchivedRun run) {
        var deserializer = AvroSerde.of(LearnerBatch.class, run.registry()).deserializer();
        List<LearnerBatch> batches = new ArrayList<>();
        String topic = run.topics().batches();
        try (RecordCursor cursor = run.read(new TopicPartition(topic, 0), 0)) {
            for (var next = cursor.next(); next.isPresent(); next = cursor.next()) {
                ConsumerRecord<byte[], byte[]> record = next.get();
                batches.add(deserializer.deserialize(topic, record.value()));
            }
        }
        return batches;
    }

    @Test
    void shouldKeepEveryNumberOfEveryLine() throws IOException {
        ObjectNode whole =
                line(4, "g", 1.0).put("id", "a").put("temperature", 0.7).put("finish_reason", "STOP");
        whole.putArray("versions").add(3).add(3).add(4);
        whole.putArray("old_log_probs").add(-0.8).addNull().add(-0.5);
        whole.putArray("reference_log_probs").add(-0.9).addNull().add(-0.4);
        whole.putArray("entropies").add(1.5).add(0).add(0.25);
        whole.putArray("turns").add(0).add(-1).add(1);
        whole.putArray("turn_rewards").add(0.25).add(0.75);
        whole.putArray("prompt_tokens").add(9).add(8);
        whole.putArray("response_tokens").add(5).add(6).add(7);
        whole.put("age_ms", 1500).put("greedy_reward", 0.5);
        whole.putObject("reward_components").put("format", 0.25);
        ObjectNode other = line(4, "g", 0.0).put("age_ms", 3000);
        other.putArray("old_log_probs").add(-0.7).addNull().add(-0.5);
        file("all.jsonl", whole, other);

        assertThat(imported("--run", "mine")).as(err.toString()).isZero();

        try (ArchivedRun run = new ArchivedRun(archive());
                var fetcher = run.fetcher()) {
            run.verify();
            assertThat(run.run().runId()).isEqualTo("mine");
            LearnerBatch batch = batches(run).get(0);
            assertThat(batch.getAssembledVersion()).isEqualTo(4);
            assertThat(batch.getExpectedVersion()).isEqualTo(4);
            assertThat(batch.getEntries())
                    .extracting(entry -> entry.getAdvantage())
                    .containsExactly(0.5, -0.5);
            assertThat(batch.getEntries().get(0).getOldestVersion()).isEqualTo(3);
            List<Trajectory> members = BatchTrajectories.of(run, batch, fetcher);
            Trajectory first = members.get(0);
            assertThat(first.getRolloutId()).isEqualTo("a");
            assertThat(first.getGroupId()).isEqualTo("g");
            assertThat(first.getGroupSize()).isEqualTo(2);
            assertThat(first.getTemperature()).isEqualTo(0.7);
            assertThat(first.getFinishReason()).isEqualTo("STOP");
            assertThat(PackedMask.toArray(first.getMask())).containsExactly(1, 0, 1);
            assertThat(PackedInts.toArray(first.getPromptTokens())).containsExactly(9, 8);
            assertThat(PackedInts.toArray(first.getResponseTokens())).containsExactly(5, 6, 7);
            assertThat(PackedFloats.toArray(first.getBehaviorLogProbs())).containsExactly(-1f, 0f, -0.5f);
            assertThat(PackedFloats.toArray(first.getProximalLogProbs())).containsExactly(-0.75f, 0f, -0.5f);
            assertThat(PackedFloats.toArray(first.getOldLogProbs())).containsExactly(-0.8f, 0f, -0.5f);
            assertThat(PackedFloats.toArray(first.getReferenceLogProbs())).containsExactly(-0.9f, 0f, -0.4f);
            assertThat(PackedFloats.toArray(first.getProximalEntropies())).containsExactly(1.5f, 0f, 0.25f);
            assertThat(first.getVersionSpans())
                    .extracting(span -> List.of(span.getVersion(), (long) span.getStart(), (long) span.getEnd()))
                    .containsExactly(List.of(3L, 0L, 2L), List.of(4L, 2L, 3L));
            assertThat(first.getTurns())
                    .extracting(Turn::getSpeaker)
                    .containsExactly(Speaker.POLICY, Speaker.ENVIRONMENT, Speaker.POLICY);
            assertThat(PackedFloats.toArray(first.getCredit().getTurnLevelRewards()))
                    .containsExactly(0.25f, 0f, 0.75f);
            assertThat(first.getCredit().getGreedyReward()).isEqualTo(0.5);
            assertThat(first.getRewardComponents()).containsEntry("format", 0.25);
            assertThat(batch.getAssembledAtMs() - first.getFinishedAtMs()).isEqualTo(1500);
            assertThat(first.getRolloutSource().getTopic()).isEqualTo("millrace.mine.rollouts");
            assertThat(first.getScoreSource().getTopic()).as("where it stands").isEqualTo("all.jsonl");
            assertThat(members.get(1).getRolloutId()).as("where it stands").isEqualTo("all.jsonl:2");
            assertThat(members.get(1).getReferenceLogProbs()).isNull();
            assertThat(batch.getAssembledAtMs() - members.get(1).getFinishedAtMs())
                    .isEqualTo(3000);
        }
    }

    @Test
    void shouldTakeFilesInTheOrderOfTheNumbersInTheirNamesAndPutGroupsTogether() throws IOException {
        file("step-10.jsonl", line(10, "b", 1));
        file("step-9.jsonl", line(9, "a", 1), line(9, "b", 0), line(9, "a", 0));

        assertThat(imported()).as(err.toString()).isZero();

        try (ArchivedRun run = new ArchivedRun(archive())) {
            assertThat(batches(run))
                    .extracting(LearnerBatch::getAssembledVersion)
                    .containsExactly(9L, 10L);
            assertThat(batches(run).get(0).getEntries())
                    .extracting(entry -> entry.getRolloutId())
                    .containsExactly("step-9.jsonl:1", "step-9.jsonl:3", "step-9.jsonl:2");
        }
    }

    @Test
    void shouldSayWhatTheRecordsLackAndWhatThatRulesOut() throws IOException {
        file("a.jsonl", line(0, "g", 1).put("advantage", 0.5), line(0, "g", 0).put("advantage", -0.25));

        assertThat(imported()).isZero();

        assertThat(said())
                .doesNotContain("without version spans")
                .contains("1 steps, 2 sequences, 6 response tokens (4 trained), at most 0 versions old")
                .contains("some lines have no sampling version")
                .contains(
                        "the advantages of 1 of 2 sequences are those that none makes; the largest difference is 0.250")
                .contains("not on every line: old log-probs,")
                .contains("without old log-probs not: ");
    }

    @Test
    void shouldBeDecidedAgainUnderOtherAlgorithmsAndRefuseWhatNeedsMore() throws IOException {
        tempered();
        assertThat(imported("--algorithm", "token_tis")).as(err.toString()).isZero();

        assertThat(millrace("replay", "--archive", archive().toString(), "--corrections", "m2po"))
                .as(err.toString())
                .isZero();
        assertThat(said()).contains("recorded is the algorithm given on import").doesNotContain("the run's own");

        String[] lastSteps = {
            "replay", "--archive", archive().toString(), "--from-version", "4", "--corrections", "vcpo"
        };
        assertThat(millrace(lastSteps)).as(err.toString()).isZero();
        assertThat(said())
                .contains("4 steps, 640 tokens, 2 corrections")
                .as("damped by the effective sample size")
                .containsPattern("vcpo 0.00 % 0.00 % \\S+ 0\\.\\d+ 0\\.\\d+ 0\\.\\d+ ");

        assertThat(millrace("replay", "--archive", archive().toString())).isEqualTo(1);
        assertThat(err.toString())
                .contains("the archive was made of records of another system, 64 sequences of 8 steps")
                .contains("other corrections can be tried on it (--corrections)");
        assertThat(millrace(
                        "import",
                        archive().toString(),
                        "--run-dir",
                        folder.resolve("run").toString()))
                .isEqualTo(1);
        assertThat(err.toString()).contains("give the folder to doctor --archive or replay --archive");
    }

    /** Behavior log-probs of the logits, not of what was sampled at temperature 0.7. */
    private void tempered() throws IOException {
        for (int step = 0; step < 8; step++) {
            ObjectNode[] lines = new ObjectNode[8];
            for (int i = 0; i < lines.length; i++) {
                lines[i] = JSON.createObjectNode()
                        .put("step", step)
                        .put("group", "g" + i / 4)
                        .put("version", Math.max(0, step - 1))
                        .put("reward", i % 2);
                ArrayNode mask = lines[i].putArray("mask");
                ArrayNode behavior = lines[i].putArray("behavior_log_probs");
                ArrayNode old = lines[i].putArray("old_log_probs");
                ArrayNode proximal = lines[i].putArray("proximal_log_probs");
                for (int t = 0; t < 20; t++) {
                    double logProb = Math.log(1 - random.nextDouble()) / 1.2;
                    mask.add(1);
                    proximal.add(logProb);
                    old.add(logProb);
                    behavior.add(0.7 * logProb);
                }
            }
            file(step + ".jsonl", lines);
        }
    }

    @Test
    void shouldBeDiagnosed() throws IOException {
        tempered();
        assertThat(imported()).isZero();

        assertThat(millrace("doctor", "--archive", archive().toString(), "--json"))
                .isEqualTo(4);

        JsonNode found = JSON.readTree(out.toString());
        assertThat(found.at("/findings/0/weight").asText()).isEqualTo("broken");
        assertThat(found.at("/findings/0/sentence").asText()).startsWith("engine mismatch (A): ");
        assertThat(found.at("/findings/0/advice").asText()).contains("after temperature and top-p");
    }

    @Test
    void shouldAccountForEverySequence() throws IOException {
        ObjectNode masked = line(3, "b", 0.0).put("version", 1);
        masked.putArray("mask").add(0).add(0).add(0);
        file("a.jsonl", line(2, "a", 1.0), line(2, "a", 0.0).put("version", 1), line(3, "b", 1.0), masked);
        assertThat(imported("--run", "mine")).as(err.toString()).isZero();

        assertThat(millrace("ledger", "--archive", archive().toString()))
                .as(err.toString())
                .isZero();

        assertThat(said())
                .contains("run mine, topics millrace.mine.*")
                .contains("4 generated = 3 trained + 1 masked + 0 dropped + 0 dead-lettered + 0 in flight")
                .contains("It adds up.");
        assertThat(millrace("ledger", "--archive", archive().toString(), "--json", "--policy-version", "1"))
                .isZero();
        assertThat(JSON.readTree(out.toString()).at("/all/generated").asInt()).isEqualTo(2);
    }

    @Test
    void shouldTraceASequenceByItsIdAndByItsPlaceInItsGroup() throws IOException {
        ObjectNode one = line(4, "b", 1.0).put("id", "mine-17").put("age_ms", 1500);
        one.putArray("versions").add(3).add(3).add(4);
        file("a.jsonl", line(4, "a", 0.0), one, line(4, "b", 0.0));
        Files.writeString(folder.resolve("dump/4.figures.json"), "{\"learning_rate\": 0.003, \"loss\": 0.5}");
        assertThat(imported()).as(err.toString()).isZero();

        assertThat(millrace("trace", "mine-17", "--archive", archive().toString()))
                .as(err.toString())
                .isZero();

        String byId = said();
        assertThat(byId)
                .contains("rollout mine-17 — trained: batch 0, version 5")
                .contains(
                        "sampled by records: 3 tokens, 2 of the policy, by versions 3 [0,2), 4 [2,3) ended by UNKNOWN,"
                                + " reward 1 rollouts-0@1")
                .contains("joined, +1.5 s ", "batched batch 0, assembled at version 4; advantage 0.5000")
                .contains("staleness expected at its step 1: 1 in flight until it was scored, 0 in the queue after")
                .contains("trained batch 0 made version 5 with 3 rollouts, learning rate 0.0030")
                .doesNotContain("1970");
        assertThat(millrace("trace", "b/0", "--archive", archive().toString())).isZero();
        assertThat(said().replaceAll("read .*", "")).isEqualTo(byId.replaceAll("read .*", ""));
        assertThat(millrace("trace", "b", "--archive", archive().toString())).isZero();
        assertThat(out.toString())
                .containsPattern("mine-17 +4 +1 +3 +trained: batch 0, version 5")
                .containsPattern("a.jsonl:3 +4 +0 +3 +trained: batch 0, version 5");
        assertThat(millrace("trace", "b/2", "--archive", archive().toString())).isEqualTo(5);
        assertThat(err.toString()).contains("there is no rollout b/2; its group exists, on the log: 0, 1");
        assertThat(millrace("trace", "mine-18", "--archive", archive().toString()))
                .isEqualTo(5);
    }

    @Test
    void shouldRefuseFiguresThatAreNoNumbers() throws IOException {
        file("a.jsonl", line(4, "a", 0.0));
        Path figures = Files.writeString(folder.resolve("dump/4.figures.json"), "{\"loss\": NaN}");

        assertThat(imported()).isEqualTo(1);

        assertThat(err.toString()).contains(figures + ": loss must be a finite number: ");
        assertThat(archive()).doesNotExist();
    }

    @Test
    void shouldSayThatAnArchiveOfAnEarlierVersionIsToBeImportedAgain() {
        RunIdentity run = new RunIdentity("old", 0, "policy");
        try (BuiltArchive archive = new BuiltArchive(archive(), run, new RunTopics("millrace.old."))) {
            archive.finish("records of another system", "run: {id: old}");
        }

        for (List<String> asked : List.of(List.of("ledger"), List.of("trace", "a/0"))) {
            List<String> command = new ArrayList<>(asked);
            command.addAll(List.of("--archive", archive().toString()));
            assertThat(millrace(command.toArray(String[]::new))).isEqualTo(1);
            assertThat(err.toString())
                    .contains("an earlier version made it without rollouts and steps; import the records again");
        }
    }

    /** What the README of the example says. */
    @Test
    void shouldAnswerTheExample() {
        assertThat(millrace(
                        "import",
                        "--records",
                        "../infra/examples/records/dump/*.jsonl",
                        "--archive",
                        archive().toString()))
                .as(err.toString())
                .isZero();

        assertThat(millrace("doctor", "--archive", archive().toString())).isEqualTo(4);
        assertThat(said())
                .contains("engine mismatch (A): ")
                .contains("|mean ratio - 1| at one version is 0.2320")
                .contains("-> record log-probs of the sampled distribution");
        assertThat(millrace(
                        "replay",
                        "--archive",
                        archive().toString(),
                        "--corrections",
                        "m2po",
                        "--corrections",
                        "token_tis"))
                .isZero();
        assertThat(out.toString())
                .containsPattern("recorded +0.00 % +0.00 % +1.000 +0.467")
                .containsPattern("m2po .* 0.501 ");
    }

    @Test
    void shouldOnlyLookAndLeaveNothing() throws IOException {
        file("a.jsonl", line(0, "g", 1));

        assertThat(millrace(
                        "import", "--records", folder.resolve("dump/a.jsonl").toString(), "--verify"))
                .as(err.toString())
                .isZero();

        assertThat(said()).contains("1 steps, 1 sequences");
        assertThat(archive()).doesNotExist();
    }

    @Test
    void shouldNameEveryBadLineAndMakeNothing() throws IOException {
        ObjectNode misspelt = line(0, "g", 1);
        misspelt.set("proximal_logprobs", misspelt.remove("proximal_log_probs"));
        ObjectNode without = line(0, "g", 1);
        without.remove("proximal_log_probs");
        ObjectNode clamped = line(1, "g", 1);
        clamped.putArray("behavior_log_probs").add(-1.0).addNull().add(-9999.0);
        file(
                "a.jsonl",
                line(0, "g", 1).put("id", "one"),
                misspelt,
                without,
                line(0, "g", 1).put("version", 1),
                line(0, "g", 1).put("id", "one"),
                line(1, "g", 1),
                line(0, "g", 1),
                clamped);

        assertThat(imported()).isEqualTo(1);

        assertThat(err.toString().lines())
                .satisfiesExactly(
                        bad -> assertThat(bad)
                                .contains(
                                        "a.jsonl:2: unknown field proximal_logprobs; did you mean proximal_log_probs?"),
                        bad -> assertThat(bad)
                                .contains("a.jsonl:3: proximal_log_probs is missing: the log-prob of each token"),
                        bad -> assertThat(bad)
                                .contains("a.jsonl:4: token 0 is of version 1 and was trained on in step 0,"),
                        bad -> assertThat(bad).contains("a.jsonl:5: id one is there already"),
                        bad -> assertThat(bad).contains("a.jsonl:7: step 0 comes again after step 1"),
                        bad -> assertThat(bad)
                                .contains("a.jsonl:8: behavior_log_probs[2] must be at least -350.0,")
                                .contains(": -9999.0; set mask[2] to 0, or remove the line"),
                        bad -> assertThat(bad)
                                .isEqualTo("6 lines or rows are bad, and no archive was made; fix or remove them"));
        assertThat(archive()).doesNotExist();
    }

    @Test
    void shouldRefuseWhatNamesNoFileAndWhatHoldsSomething() throws IOException {
        assertThat(millrace("import", "--records", folder + "/*.jsonl", "--verify"))
                .isEqualTo(1);
        assertThat(err.toString()).contains("names no file; give a file, or a folder and a pattern");

        file("a.jsonl", line(0, "g", 1));
        Files.createDirectories(archive());
        Files.writeString(archive().resolve("mine.txt"), "keep");
        assertThat(imported()).isEqualTo(1);
        assertThat(err.toString()).contains("is not empty; give a new or empty folder for the archive");
        assertThat(archive().resolve("mine.txt")).hasContent("keep");
    }

    @Test
    void shouldRefuseAnAlgorithmThatReadsWhatIsNotThere() throws IOException {
        file("a.jsonl", line(0, "g", 1), line(0, "g", 0));
        Path yaml = Files.writeString(folder.resolve("entropic.yaml"), "algorithm: {advantage: {kind: turn_level}}");

        assertThat(imported("--algorithm", "ppo")).isEqualTo(1);
        assertThat(err.toString()).contains("--algorithm ppo compares old log-probs, and the records have none");
        assertThat(imported("--algorithm", yaml.toString())).isNotZero();

        assertThat(err.toString()).doesNotContain("Exception").isNotBlank();
        assertThat(archive()).doesNotExist();
    }

    @ParameterizedTest
    @CsvSource({"2.jsonl,10.jsonl,-1", "a2,a2,0", "a,a1,-1", "step10-b,step10-a,1", "x,1,1", "007,7,-1"})
    void shouldCompareNamesByTheirNumbers(String one, String other, int sign) {
        assertThat(Integer.signum(RecordFiles.compare(one, other))).isEqualTo(sign);
    }
}
