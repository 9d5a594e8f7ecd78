package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.Main;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Diagnosis.Evidence;
import dev.millrace.corrections.diagnostics.Fix;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.retrain.TrialLimit;
import dev.millrace.report.Lines;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.Treatment;
import dev.millrace.runtime.report.TreatmentReport;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Every leaf of the decision tree: records for which it is reached, and its patch, which binds and mends on these records what the leaf
 * named, or the places elsewhere that it names where no patch of {@code algorithm} can. The records are those of another system, as
 * {@code import --records} reads them; numbers are made by hand so that each leaf stands alone. The clip that saturates is read from the
 * steps of a run of ours, which records of another system do not have: {@link RecordedSaturationTest} has one.
 */
class SmallestFixTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int SEQUENCES = 16;
    private static final int TOKENS = 24;
    private static final int STEPS = 12;

    /** Fixes that a test here is about; the last looks that none of the tree's is left out. */
    private static final Set<Fix> HELD = EnumSet.of(
            Fix.NONE,
            Fix.ALIGN_TOKENS,
            Fix.ALIGN_SAMPLING,
            Fix.ALIGN_ENGINES,
            Fix.LOWER_STALENESS,
            Fix.REJECT,
            Fix.REJECT_AND_WEIGH,
            Fix.MASK_BAND,
            Fix.MEND_SYSTEMS,
            Fix.LOWER_PRESSURE,
            Fix.SLOW_DOWN);

    @TempDir
    private Path folder;

    private final SplittableRandom random = new SplittableRandom(7);

    /** What the three policies say of a token, given what a token of that kind has as its log-prob. */
    private interface Policies {
        /** Behavior, old and proximal; old may be NaN, of no line then. */
        double[] of(int sequence, int token, double logProb);
    }

    private double logProb() {
        return Math.log(0.001 + 0.05 * random.nextDouble());
    }

    /** A log ratio whose ratio is 1 on average. */
    private double apart(double spread) {
        return spread * random.nextGaussian() - spread * spread / 2;
    }

    private Path archive() {
        return folder.resolve("archive");
    }

    private String millrace(int status, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int ended = Main.commandLine()
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(arguments);
        assertThat(ended).as(out + "\n" + err).isEqualTo(status);
        return out.toString();
    }

    private void recorded(String algorithm, Policies policies) throws IOException {
        recorded(algorithm, STEPS, SEQUENCES, step -> TOKENS, policies);
    }

    private interface Length {
        int at(int step);
    }

    private void recorded(String algorithm, int steps, int sequences, Length length, Policies policies)
            throws IOException {
        List<String> lines = new ArrayList<>();
        for (int step = 1; step <= steps; step++) {
            for (int s = 0; s < sequences; s++) {
                ObjectNode line = JSON.createObjectNode()
                        .put("step", step)
                        .put("group", "g" + s / 4)
                        .put("version", step - 1)
                        .put("reward", s % 2);
                ArrayNode mask = line.putArray("mask");
                ArrayNode behavior = line.putArray("behavior_log_probs");
                ArrayNode proximal = line.putArray("proximal_log_probs");
                double[] old = new double[length.at(step)];
                for (int t = 0; t < old.length; t++) {
                    double[] three = policies.of(s, t, logProb());
                    mask.add(1);
                    behavior.add(three[0]);
                    old[t] = three[1];
                    proximal.add(three[2]);
                }
                if (!Double.isNaN(old[0])) {
                    ArrayNode olds = line.putArray("old_log_probs");
                    for (double each : old) {
                        olds.add(each);
                    }
                }
                lines.add(line.toString());
            }
        }
        Path file = Files.write(folder.resolve("steps.jsonl"), lines);
        List<String> arguments = new ArrayList<>(List.of(
                "import", "--records", file.toString(), "--archive", archive().toString()));
        if (!algorithm.isEmpty()) {
            arguments.addAll(List.of(
                    "--algorithm",
                    Files.writeString(folder.resolve("its.yaml"), algorithm).toString()));
        }
        millrace(0, arguments.toArray(String[]::new));
    }

    /** The doctor's treatment of the records. */
    private JsonNode treatment(int status) throws IOException {
        JsonNode found =
                JSON.readTree(millrace(status, "doctor", "--archive", archive().toString(), "--json"));
        return found.path("treatment");
    }

    private static void requireFix(JsonNode treatment, Fix fix) {
        assertThat(treatment.path("fix").asText().toUpperCase(Locale.ROOT))
                .as(treatment.toPrettyString())
                .isEqualTo(fix.name());
    }

    /** The smallest of the patches ends the alarm, which held before; the course under it. */
    private static JsonNode requireMended(JsonNode treatment) {
        JsonNode trial = treatment.path("trial");
        assertThat(trial.path("steps").asInt()).as(treatment.toPrettyString()).isEqualTo(STEPS);
        assertThat(trial.path("not_as_recorded").asInt()).isZero();
        assertThat(trial.at("/recorded/cause_steps").asInt()).isPositive();
        String smallest = trial.path("smallest").asText();
        assertThat(smallest).as(treatment.toPrettyString()).isNotEmpty();
        return StreamSupport.stream(trial.path("patched").spliterator(), false)
                .filter(course -> course.path("name").asText().equals(smallest))
                .findFirst()
                .orElseThrow();
    }

    private static void requireElsewhere(JsonNode treatment, String... places) {
        assertThat(treatment.path("patches")).isEmpty();
        assertThat(treatment.has("trial")).isFalse();
        assertThat(treatment.path("elsewhere").findValuesAsText("where")).containsExactly(places);
        assertThat(treatment.path("answer").asText()).startsWith("no patch of algorithm can; what else: ");
    }

    @Test
    void shouldTreatNothingWhereNothingIsWrong() throws IOException {
        recorded("", (s, t, p) -> new double[] {p, p + apart(0.02), p + apart(0.05)});

        assertThat(treatment(0).isMissingNode()).isTrue();
    }

    @Test
    void shouldNameTheTokensWhereOthersWereScored() throws IOException {
        recorded("", (s, t, p) -> {
            double other = logProb() - 1.5;
            return new double[] {p, other, other};
        });
        JsonNode treatment = treatment(4);

        requireFix(treatment, Fix.ALIGN_TOKENS);
        requireElsewhere(treatment, "the tokens that are scored");
    }

    @Test
    void shouldNameTheLogProbsWhereTheyAreOfAnotherDistribution() throws IOException {
        recorded("", (s, t, p) -> new double[] {p, p - 0.4, p - 0.4});
        JsonNode treatment = treatment(4);

        requireFix(treatment, Fix.ALIGN_SAMPLING);
        requireElsewhere(treatment, "the log-probs of the engine that samples");
    }

    @Test
    void shouldNamePrecisionAndRoutingWhereEnginesDisagree() throws IOException {
        recorded("", (s, t, p) -> {
            double old = p + apart(0.4);
            return new double[] {p, old, old};
        });
        JsonNode treatment = treatment(4);

        requireFix(treatment, Fix.ALIGN_ENGINES);
        requireElsewhere(treatment, "generator.precision", "algorithm.routing_replay");
    }

    @Test
    void shouldWeighWhatIsStaleAndNameWhatMakesItFresher() throws IOException {
        recorded("", (s, t, p) -> new double[] {p, p, p + apart(0.4)});
        JsonNode treatment = treatment(0);

        requireFix(treatment, Fix.LOWER_STALENESS);
        JsonNode patched = requireMended(treatment);
        assertThat(patched.path("name").asText()).isEqualTo("weights.kind=token, weights.threshold=2.0");
        assertThat(patched.path("tokens_masked").asInt()).isZero();
        assertThat(treatment.path("elsewhere").findValuesAsText("where")).containsExactly("admission.eta");
    }

    @Test
    void shouldRejectTheSequencesThatAreFarOff() throws IOException {
        recorded("", (s, t, p) -> new double[] {s == 3 ? p - Math.log(3) : p, Double.NaN, p + apart(0.002)});
        JsonNode treatment = treatment(0);

        requireFix(treatment, Fix.REJECT);
        JsonNode patched = requireMended(treatment);
        assertThat(patched.path("name").asText())
                .isEqualTo("rejection.rollout_rs=seq_mean_k1, rejection.rollout_rs_threshold=0.99_1.01");
        assertThat(patched.path("sequences_masked").asInt()).isEqualTo(STEPS); // one per step
        double before = treatment.at("/trial/recorded/chi_square").asDouble();
        assertThat(before).isGreaterThan(0.3);
        assertThat(patched.path("chi_square").asDouble()).isLessThan(0.01);
        assertThat(patched.path("ess").asDouble())
                .isGreaterThan(treatment.at("/trial/recorded/ess").asDouble());
    }

    @Test
    void shouldWidenTheBandWhereTheNarrowOneRejectsNearlyAll() throws IOException {
        recorded("", (s, t, p) -> new double[] {s == 3 ? p - Math.log(3) : p, Double.NaN, p + 0.03});
        JsonNode treatment = treatment(0);

        requireFix(treatment, Fix.REJECT);
        assertThat(treatment.at("/trial/patched/0/mends").asBoolean()).isFalse();
        assertThat(requireMended(treatment).path("name").asText()).endsWith("rollout_rs_threshold=0.9_1.1");
    }

    @Test
    void shouldWeighBesideARejectionThatTakesOutMuch() throws IOException {
        recorded("{variant: none, rejection: {rollout_rs: seq_mean_k1, rollout_rs_threshold: 0.99_1.01}}", (s, t, p) ->
                new double[] {s % 8 == 3 ? p - Math.log(1.5) : p, Double.NaN, p + apart(0.002)});
        JsonNode treatment = treatment(0);

        requireFix(treatment, Fix.REJECT_AND_WEIGH);
        assertThat(treatment.at("/trial/recorded/rejected").asDouble()).isEqualTo(0.125);
        assertThat(requireMended(treatment).path("name").asText())
                .endsWith("weights.kind=token, weights.threshold=2.0");
    }

    @Test
    void shouldMaskTheTokensThatBlowTheVarianceUp() throws IOException {
        recorded("", (s, t, p) -> new double[] {t % 20 == 0 ? p - Math.log(6) : p, Double.NaN, p});
        JsonNode treatment = treatment(4);

        requireFix(treatment, Fix.MASK_BAND);
        JsonNode patched = requireMended(treatment);
        assertThat(patched.path("name").asText()).isEqualTo("weights.kind=token, weights.threshold=0.5_5.0");
        assertThat(patched.path("banded").asDouble()).isEqualTo(2.0 / TOKENS);
        assertThat(treatment.at("/trial/recorded/chi_square").asDouble()).isGreaterThan(1);
        assertThat(patched.path("chi_square").asDouble()).isEqualTo(0);
        assertThat(patched.path("tokens_lost").asInt()).isEqualTo(2 * SEQUENCES * STEPS);
    }

    @Test
    void shouldNameTheSystemsWhereABandHasComeToItsEnd() throws IOException {
        recorded("{variant: none, weights: {kind: token, threshold: 0.5_5.0}}", (s, t, p) ->
                new double[] {t % 6 == 0 ? p - Math.log(6) : p, Double.NaN, p});
        JsonNode treatment = treatment(4);

        requireFix(treatment, Fix.MEND_SYSTEMS);
        requireElsewhere(treatment, "admission.eta", "generator.precision", "algorithm.routing_replay");
    }

    @Test
    void shouldSlowDownWhereAnswersSurge() throws IOException {
        recorded("", 112, 4, step -> step <= 102 ? 20 : 40, (s, t, p) -> new double[] {p, p, p});
        JsonNode treatment = treatment(4);

        requireFix(treatment, Fix.SLOW_DOWN);
        assertThat(treatment.at("/patches/0/yaml").asText())
                .isEqualTo("algorithm:\n  length_guard:\n    kind: surge\n");
        assertThat(treatment.at("/trial/recorded/guarded_steps").asInt()).isZero();
        assertThat(treatment.at("/trial/patched/0/guarded_steps").asInt()).isEqualTo(10); // of 103 to 112
        assertThat(treatment.at("/trial/patched/0/tokens_masked").asInt()).isZero();
        assertThat(treatment.path("answer").asText())
                .isEqualTo("length_guard.kind=surge: it would have lowered the rate at 10 of 112 steps");
    }

    /** Of a diagnosis that is made by hand, over an algorithm that is put over the archive's. */
    private Treatment treatment(String algorithm, Cause cause, Fix fix) throws InterruptedException {
        try (ArchivedRun run = new ArchivedRun(archive())) {
            MillraceConfig config = ConfigBinder.bind(
                    MillraceConfig.defaults(),
                    ConfigTree.parse(run.configuration().orElseThrow(), "the archive's configuration"));
            return Treatment.of(
                    run,
                    ConfigBinder.bind(config, ConfigTree.parse("algorithm: " + algorithm, "a test's")),
                    new Diagnosis(
                            List.of(new Branch(cause, List.of(new Evidence("a share", 0.3, true, 0.2)), fix)),
                            Collections.emptySet()),
                    new TrialLimit(5, Duration.ofSeconds(30)),
                    2);
        }
    }

    private void healthy() throws IOException {
        recorded("", (s, t, p) -> new double[] {p, Double.NaN, p});
    }

    @Test
    void shouldTakeUpdatesAwayWhereMuchIsClippedAndSayThatOnlyLearningShowsIt() throws Exception {
        healthy();
        Treatment treatment = treatment(
                "{variant: dppo_tv, objective: {anchor: proximal}, epochs: 4}",
                Cause.CLIP_SATURATION,
                Fix.LOWER_PRESSURE);

        assertThat(treatment.doses())
                .extracting(Treatment.Dose::name)
                .containsExactly("epochs=1", "epochs=1, minibatches=1");
        assertThat(treatment.doses().get(0).refusal()).isEmpty();
        assertThat(treatment.doses().get(1).refusal().orElseThrow())
                .contains("dppo_tv cannot act: with minibatches=1 and epochs=1");
        assertThat(treatment.trial()).isEmpty();
        assertThat(TreatmentReport.conclusion(treatment).answer())
                .isEqualTo("epochs=1, which a replay of decisions cannot test");
        assertThat(TreatmentReport.section(treatment).notes())
                .anyMatch(note -> note.contains("./millrace replay --retrain --corrections PATCH.yaml"))
                .contains("elsewhere: learner.step.optimizer.learning_rate: half of it");
        assertThat(TreatmentReport.section(treatment).listing())
                .isEqualTo("# or: --set algorithm.epochs=1\nalgorithm:\n  epochs: 1\n");
    }

    @Test
    void shouldRefuseAPatchThatDoesNotGoWithTheAlgorithmAndSayWhy() throws Exception {
        healthy();
        Treatment treatment = treatment("bypass_pg_is", Cause.VARIANCE_BLOW_UP, Fix.MASK_BAND);

        assertThat(treatment.trial()).isEmpty();
        assertThat(treatment.doses())
                .allSatisfy(dose -> assertThat(dose.refusal().orElseThrow())
                        .contains("corrects for everything by its own ratio to behavior"));
        assertThat(TreatmentReport.conclusion(treatment).answer())
                .isEqualTo("no patch of algorithm goes with this run; what else: admission.eta");
    }

    @Test
    void shouldNameTheInputThatWasNotRecorded() throws Exception {
        healthy();
        Treatment treatment = treatment("{variant: ppo}", Cause.TOKEN_DRIFT, Fix.REJECT_AND_WEIGH);

        assertThat(treatment.doses())
                .allSatisfy(dose -> assertThat(dose.refusal())
                        .contains("it reads old log-probs, and the run's rollouts were recorded without them"));
    }

    @Test
    void shouldTryNoMoreThanItIsAllowed() throws Exception {
        healthy();
        Treatment treatment = treatment("none", Cause.TOKEN_DRIFT, Fix.REJECT);

        assertThat(treatment.trial().orElseThrow().batches().count()).isEqualTo(5);
        assertThat(treatment.trial().orElseThrow().batches().first()).isEqualTo(STEPS - 5);
        assertThat(treatment.trial().orElseThrow().batches().rollouts()).isEqualTo(5L * SEQUENCES);
        assertThat(TreatmentReport.section(treatment).notes().get(0))
                .contains("tried on batches 7 to 11: 5 steps of 80 rollouts")
                .contains("(at most 5 batches and 30 s)");
    }

    /** Far-off tokens at every other step, and at the last: an alarm that no patch clears. */
    @Test
    void shouldSayThatAnAlarmWouldAlsoHaveGoneByChance() throws IOException {
        int[] token = {0};
        recorded("", (s, t, p) -> {
            int step = token[0]++ / (SEQUENCES * TOKENS);
            return new double[] {step % 2 == 1 && t % 20 == 0 ? p - Math.log(6) : p, Double.NaN, p};
        });
        JsonNode treatment = treatment(4);

        assertThat(treatment.at("/trial/recorded/cause_steps").asInt()).isEqualTo(6);
        assertThat(treatment.at("/trial/unpatched/followed").asInt()).isEqualTo(5);
        assertThat(treatment.at("/trial/unpatched/gone").asInt()).isEqualTo(5);
        assertThat(treatment.path("answer").asText())
                .endsWith(
                        "ends the alarm on the recorded batches; but the alarm also ends by chance: unpatched, it ended a step later after 5 of 5 steps that had it");
    }

    @Test
    void shouldSayWhetherAnAlarmStoodLongEnoughToTell() throws IOException {
        int[] token = {0};
        recorded("", (s, t, p) -> {
            int step = token[0]++ / (SEQUENCES * TOKENS);
            return new double[] {step >= STEPS - 2 && t % 20 == 0 ? p - Math.log(6) : p, Double.NaN, p};
        });
        assertThat(treatment(4).path("answer").asText())
                .endsWith(
                        "; whether it would have ended by chance is unknown: it was raised at the last 2 steps only, and the window is 8");
    }

    @Test
    void shouldSayThatAnAlarmStoodAllTheTimeUnpatched() throws IOException {
        recorded("", (s, t, p) -> new double[] {t % 20 == 0 ? p - Math.log(6) : p, Double.NaN, p});

        assertThat(treatment(4).path("answer").asText())
                .endsWith(
                        "ends the alarm on the recorded batches; unpatched, it persisted at each of the 11 steps that followed one with it");
    }

    @Test
    void shouldShowTheSameInATerminalAndOnAPage() throws IOException {
        recorded("", (s, t, p) -> new double[] {t % 20 == 0 ? p - Math.log(6) : p, Double.NaN, p});
        String said = millrace(
                4,
                "doctor",
                "--archive",
                archive().toString(),
                "--report",
                folder.resolve("report").toString());

        assertThat(said)
                .contains("  answer      weights.kind=token, weights.threshold=0.5_5.0: ends the alarm on\n")
                .contains("    algorithm:\n      weights:\n        kind: token\n")
                .contains("steps with this alarm")
                .contains("not shown by a replay:");
        assertThat(said.lines())
                .filteredOn(line -> !line.contains("/") && !line.contains("--set"))
                .allMatch(line -> line.length() <= Lines.width());
        JsonNode report = JSON.readTree(folder.resolve("report/report.json").toFile());
        assertThat(report.at("/conclusion/health").asText()).isEqualTo("ILL");
        assertThat(report.path("view").asText()).startsWith("./millrace view --archive ");
        assertThat(Files.readString(folder.resolve("report/report.html")))
                .contains("ends the alarm on the recorded batches");
        assertThat(millrace(4, "doctor", "--archive", archive().toString(), "--try", "0"))
                .doesNotContain("ends the alarm");
    }

    @Test
    void shouldHoldEveryFixOfTheTree() {
        assertThat(HELD).containsExactlyInAnyOrder(Fix.values());
    }
}
