package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.audit.ledger.Account;
import dev.millrace.cli.Main;
import dev.millrace.cli.audit.RunInFolder;
import dev.millrace.cli.replay.ReplayCommand;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/**
 * One run that is ended in every way there is (kill -9, Ctrl-C, a polite kill), gone on with by the same command each
 * time, and then brought to its last step.
 *
 * <p>Two fresh runs with one seed are not equal: which version samples a rollout, and which rollouts meet in a batch,
 * depends on time. What is repeatable is what is committed: no restart changes it.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ResumeIT {
    private static final int SEQUENCES = 64;
    private static final String[] COMMAND = {
        "--set",
        "goal.mean_reward=0",
        "--set",
        "admission.batch_sequences=" + SEQUENCES,
        "--set",
        "topology.batch.sequences=" + SEQUENCES,
        "--max-steps",
        "5000"
    };

    private record Stopped(int status, List<String> out, List<String> err, JsonNode summary, List<String> rows) {}

    @TempDir
    private static Path folder;

    private Path directory;
    private String runId;
    private List<TrainingStep> beforeTheKill;
    private Stopped interrupted;
    private Stopped terminated;
    private Stopped finished;
    private List<TrainingStep> steps;
    private List<PolicyVersion> versions;
    private Account account;

    @BeforeAll
    void stopAndGoOn() throws Exception {
        directory = folder.resolve("run");
        try (TrainProcess process = TrainProcess.train(directory, COMMAND)) {
            runId = process.awaitLine("^run (\\S+) in run$").group(1);
            process.awaitStep(2);
            process.signal("KILL");
            assertThat(process.awaitExit(TrainProcess.PATIENCE)).isEqualTo(128 + 9);
        }
        assertThat(directory.resolve("summary.json")).doesNotExist();
        try (LoggedRun run = LoggedRun.in(directory, runId)) {
            beforeTheKill = run.records(run.topics().trainingLog(), TrainingStep.class);
        }
        interrupted = continueUntil(beforeTheKill.size() + 1L, "INT");
        terminated = continueUntil(interrupted.summary.path("steps").asLong() + 1, "TERM");
        long last = terminated.summary.path("steps").asLong() + 2;
        RunInFolder.Said said = RunInFolder.said(
                List.of("train", "--plain", "--run-dir", directory.toString(), "--max-steps", Long.toString(last)));
        finished = stopped(
                said.status(), said.out().lines().toList(), said.err().lines().toList());
        try (LoggedRun run = LoggedRun.in(directory, runId)) {
            steps = run.records(run.topics().trainingLog(), TrainingStep.class);
            versions = run.records(run.topics().policyVersions(), PolicyVersion.class);
            account = run.account();
        }
    }

    private Stopped continueUntil(long step, String signal) throws Exception {
        try (TrainProcess process = TrainProcess.train(directory, COMMAND)) {
            process.awaitLine("^continuing run " + runId + " in run$");
            process.awaitStep(step);
            process.signal(signal);
            int status = process.awaitExit(TrainProcess.PATIENCE);
            return stopped(status, process.out(), process.err());
        }
    }

    private Stopped stopped(int status, List<String> out, List<String> err) throws Exception {
        return new Stopped(
                status,
                out,
                err,
                new ObjectMapper().readTree(directory.resolve("summary.json").toFile()),
                Files.readAllLines(directory.resolve("steps.csv")));
    }

    @Test
    void shouldEndOnASignalWithItsResultsWritten() {
        for (Stopped stop : List.of(interrupted, terminated)) {
            assertThat(stop.status).isEqualTo(130);
            assertThat(stop.err).isEmpty();
            assertThat(stop.out)
                    .contains(
                            "stopping; a second signal exits at once, without the summary",
                            "the run stopped because it was interrupted");
            assertThat(stop.summary.path("stopped_because").asText()).isEqualTo("it was interrupted");
            assertThat(stop.rows).hasSize(1 + stop.summary.path("steps").asInt());
            assertThat(stop.summary.at("/rollouts/adds_up").asBoolean())
                    .as(stop.summary.toString())
                    .isTrue();
        }
    }

    @Test
    void shouldComeOutByteForByteWhenItIsReplayed() {
        String asRecorded = replay();
        assertThat(asRecorded).contains("as recorded: the replay reproduced every record of the run byte for byte");
        assertThat(asRecorded).as("every process was another instance").doesNotContain("moved 0 times");
        assertThat(replay(
                        "--corrections",
                        "none",
                        "--corrections",
                        "decoupled_k3_rs_token_tis",
                        "--report",
                        folder.resolve("report").toString()))
                .contains("the run's own corrections reproduce every batch");
        assertThat(folder.resolve("report").resolve("report.html")).content().contains("decoupled_k3_rs_token_tis");
    }

    @Test
    void shouldGiveTheSameLogProbsAndTheLearnersDecisionsWhenItIsScoredAgain() {
        assertThat(replay("--rescore", "own,at-step", "--corrections", "none").replaceAll("\\s+", " "))
                .contains("under the versions of the record: the same bit for bit")
                .contains("match the learner's log at all " + steps.size() + " steps");
    }

    @Test
    void shouldScoreAgainFromAnArchiveOfSomeSteps() {
        String archive = folder.resolve("some.archive").toString();
        assertThat(run(
                        0,
                        "export",
                        "--run-dir",
                        directory.toString(),
                        "--to",
                        archive,
                        "--from-offset",
                        "1",
                        "--to-offset",
                        "2"))
                .contains("weights of versions")
                .contains("and the optimiser's state of version");
        Path report = folder.resolve("some-report");
        assertThat(run(
                        0,
                        "replay",
                        "--archive",
                        archive,
                        "--rescore",
                        "own,at-step",
                        "--report",
                        report.toString(),
                        "--keep"))
                .contains("the same bit for bit")
                .contains("are written, with the trajectories, to " + report.resolve("kept"));
        assertThat(report.resolve("kept/rescored_own_at-step"))
                .isDirectoryContaining("glob:**/batches.avro")
                .isDirectoryContaining("glob:**/trajectories.avro")
                .isDirectoryNotContaining("glob:**.unfinished");
        assertThat(run(0, "replay", "--archive", archive, "--retrain", "--live", "--evaluation-prompts", "0"))
                .contains("of them token for token, and reproduce the weights of")
                .contains("bit for bit");
        assertThat(run(ReplayCommand.NOT_PROVED, "replay", "--archive", archive))
                .contains("starts in the middle of the run, at batch");
    }

    @Test
    void shouldBeLearntAgainBitForBitFromRolloutsSampledAgain() throws Exception {
        String learnt = folder.resolve("learnt").toString();
        assertThat(run(
                        0,
                        "replay",
                        "--run-dir",
                        directory.toString(),
                        "--retrain",
                        "--live",
                        "--from-version",
                        Integer.toString(steps.size() - 1),
                        "--evaluation-prompts",
                        "16",
                        "--report",
                        learnt))
                .contains("the run's own settings sample its rollouts again, all " + SEQUENCES + " of them "
                        + "token for token, and reproduce the weights of version " + steps.size() + " bit for bit");
        assertThat(Path.of(learnt, "counterfactual.html"))
                .content()
                .contains("Counterfactual training: run")
                .contains("reward of the policy in the run's task");
        assertThat(Path.of(learnt, "retrain.csv"))
                .content()
                .contains(steps.get(steps.size() - 1).getWeightsSha256());
    }

    private static String run(int status, String... arguments) {
        StringWriter out = new StringWriter();
        assertThat(Main.commandLine().setOut(new PrintWriter(out)).execute(arguments))
                .as(out.toString())
                .isEqualTo(status);
        return out.toString().replaceAll("\\s+", " ");
    }

    private String replay(String... options) {
        StringWriter out = new StringWriter();
        List<String> arguments = new ArrayList<>(List.of("replay", "--run-dir", directory.toString()));
        arguments.addAll(List.of(options));
        int status = Main.commandLine().setOut(new PrintWriter(out)).execute(arguments.toArray(String[]::new));
        assertThat(status).as(out.toString()).isZero();
        return out.toString();
    }

    @Test
    void shouldGoOnFromTheLastCommittedStepEachTime() {
        assertThat(beforeTheKill).isNotEmpty();
        assertThat(interrupted.summary.path("steps").asInt()).isGreaterThan(beforeTheKill.size());
        assertThat(terminated.summary.path("steps").asInt())
                .isGreaterThan(interrupted.summary.path("steps").asInt());
        assertThat(finished.status).as(String.join("\n", finished.err)).isZero();
        assertThat(finished.summary.path("steps").asInt())
                .isEqualTo(terminated.summary.path("steps").asInt() + 2);
    }

    @Test
    void shouldNumberStepsWithoutGapOrRepetition() {
        assertThat(steps).extracting(step -> step.getBatchId() + 1).containsExactlyElementsOf(numbers(1, steps.size()));
        assertThat(steps).extracting(TrainingStep::getVersion).containsExactlyElementsOf(numbers(1, steps.size()));
        assertThat(finished.rows.subList(1, finished.rows.size()))
                .extracting(row -> Long.valueOf(row.split(",")[0]))
                .containsExactlyElementsOf(numbers(1, steps.size()));
    }

    private static List<Long> numbers(long from, long to) {
        return LongStream.rangeClosed(from, to).boxed().toList();
    }

    @Test
    void shouldPublishEveryVersionOnce() {
        assertThat(versions).extracting(PolicyVersion::getVersion).containsExactlyElementsOf(numbers(0, steps.size()));
        assertThat(versions)
                .extracting(version -> version.getWeights().getSha256())
                .doesNotHaveDuplicates();
        IntStream.range(0, steps.size())
                .forEach(i -> assertThat(steps.get(i).getWeightsSha256())
                        .isEqualTo(versions.get(i + 1).getWeights().getSha256()));
    }

    @Test
    void shouldNotChangeWhatIsCommitted() {
        assertThat(steps.subList(0, beforeTheKill.size())).isEqualTo(beforeTheKill);
        assertThat(terminated.rows).startsWith(interrupted.rows.toArray(String[]::new));
        assertThat(finished.rows).startsWith(terminated.rows.toArray(String[]::new));
    }

    @Test
    void shouldAccountForEveryRolloutOfAllItsLives() {
        assertThat(account.balance().addsUp()).as(account.balance().toString()).isTrue();
        assertThat(account.balance().all().trained() + account.balance().all().maskedInAll())
                .isEqualTo((long) SEQUENCES * steps.size());
        assertThat(account.balance().all().deadLetteredInAll()).isZero();
        assertThat(account.balance().all().dropped().keySet())
                .as("what a crash repeats is recognised, and what was under way for too long is not trained on")
                .isSubsetOf("duplicate", "stale");
    }
}
