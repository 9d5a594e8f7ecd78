package dev.millrace.audit.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.millrace.audit.doctor.Examination.HeldOut;
import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.Balance.OldestPending;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Diagnosis.Evidence;
import dev.millrace.corrections.diagnostics.Fix;
import dev.millrace.corrections.diagnostics.Pitfall;
import dev.millrace.log.Alarm;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.IntFunction;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;

class DoctorTest {
    private static final long NOW = 1_000_000;
    private static final Tally WELL =
            new Tally(1000, 990, Map.of(), Map.of(), Map.of(), new Tally.Unfinished(10, 0, 0, 0, 0));

    private static Balance balance(Tally tally, List<OldestPending> waiting, List<String> contradictions) {
        return new Balance(
                new TreeMap<>(Map.of(new RolloutOrigin(0, 3), tally)),
                0,
                new Balance.Unmatched(Map.of(), Map.of(), Map.of()),
                waiting,
                contradictions,
                contradictions.size(),
                List.of());
    }

    private static TrainingStep step(long finishedAtMs, double ess, Map<String, Double> metrics) {
        return TrainingStep.newBuilder()
                .setRunId("run-1")
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(11)
                .setVersion(12)
                .setWeightsSha256("00")
                .setRolloutsTrained(256)
                .setRolloutsMasked(0)
                .setTokensTrained(1280)
                .setRewardMean(0.5)
                .setStalenessMean(0.0)
                .setStalenessMax(0L)
                .setEssRatio(ess)
                .setLearningRate(1e-3)
                .setMetrics(metrics)
                .setStartedAtMs(finishedAtMs - 10)
                .setFinishedAtMs(finishedAtMs)
                .build();
    }

    private static Diagnosis diagnosis(Cause cause, Fix fix) {
        return new Diagnosis(
                List.of(new Branch(cause, List.of(new Evidence("token chi-square", 1.5, true, 1)), fix)), Set.of());
    }

    private static List<TrainingStep> course(int steps, LongUnaryOperator tokensTrained, IntFunction<String> sha) {
        List<TrainingStep> course = new ArrayList<>();
        for (int i = 0; i < steps; i++) {
            TrainingStep step = step(
                    NOW,
                    0.9,
                    Map.of("stage.m2po.tokens_seen", 1000.0, "stage.m2po.tokens_changed", i == 0 ? 1.0 : 0.0));
            course.add(TrainingStep.newBuilder(step)
                    .setTokensTrained(tokensTrained.applyAsLong(i))
                    .setWeightsSha256(sha.apply(i))
                    .build());
        }
        return course;
    }

    private static List<Finding> ofCourse(List<TrainingStep> steps) {
        return findings(balance(WELL, List.of(), List.of()), steps, List.of(), Optional.empty());
    }

    private static Serving serving(String id, long version, long heartbeatMs) {
        return new Serving(
                "run-1",
                0,
                id,
                ServerRole.GENERATOR,
                "policy",
                version,
                0L,
                heartbeatMs,
                0L,
                null,
                false,
                null,
                List.of(),
                null);
    }

    private static List<Finding> findings(
            Balance balance, List<TrainingStep> steps, List<Serving> serving, Optional<Diagnosis> offPolicy) {
        return new Doctor()
                .findings(new Examination(
                        0,
                        new Account(balance, 0, 0, 0, steps),
                        OptionalLong.of(12),
                        OptionalLong.empty(),
                        offPolicy,
                        HeldOut.NONE,
                        new Examination.Observed(serving, Map.of(), List.of(), NOW)));
    }

    private static List<Finding> ofSteps(Map<String, Double> metrics, double ess) {
        return findings(
                balance(WELL, List.of(), List.of()), List.of(step(NOW, ess, metrics)), List.of(), Optional.empty());
    }

    @Test
    void shouldSayNothingOfARunThatIsWell() {
        assertThat(findings(
                        balance(WELL, List.of(), List.of()),
                        List.of(step(NOW, 0.9, Map.of("stage.order.length_bias", 1.0))),
                        List.of(serving("g1", 11, NOW)),
                        Optional.of(diagnosis(Cause.NONE, Fix.NONE))))
                .isEmpty();
    }

    @Test
    void shouldJudgeTheEpochThatIsExaminedAndNoOlderOne() {
        List<TrainingStep> steps = new ArrayList<>(course(12, i -> 100, i -> "00")); // frozen
        for (int i = 0; i < 3; i++) {
            steps.add(TrainingStep.newBuilder(step(NOW, 0.9, Map.of()))
                    .setEpoch(1)
                    .setBatchId(i)
                    .setWeightsSha256("" + i)
                    .build());
        }
        Balance balance = new Balance(
                new TreeMap<>(Map.of(
                        new RolloutOrigin(0, 3),
                        new Tally(
                                1000,
                                0,
                                Map.of(),
                                Map.of("stale", 900L),
                                Map.of("reward", 100L),
                                new Tally.Unfinished(0, 0, 0, 0, 0)),
                        new RolloutOrigin(1, 3),
                        WELL)),
                0,
                new Balance.Unmatched(Map.of(), Map.of(), Map.of()),
                List.of(),
                List.of(),
                0,
                List.of());
        IntFunction<Examination> of = epoch -> new Examination(
                epoch,
                new Account(balance, 0, 0, 0, steps),
                OptionalLong.of(12),
                OptionalLong.empty(),
                Optional.empty(),
                HeldOut.NONE,
                new Examination.Observed(List.of(), Map.of(), List.of(), NOW));

        assertThat(new Doctor().findings(of.apply(0)))
                .extracting(Finding::subject)
                .contains("frozen", "refused", "dropped");
        assertThat(new Doctor().findings(of.apply(1))).isEmpty();
        assertThat(of.apply(1).steps()).hasSize(3);
    }

    @Test
    void shouldSayWhichAlarmsLastAndWhatEndsThem() {
        Examination examination = new Examination(
                0,
                new Account(balance(WELL, List.of(), List.of()), 0, 0, 0, List.of()),
                OptionalLong.empty(),
                OptionalLong.empty(),
                Optional.empty(),
                HeldOut.NONE,
                new Examination.Observed(
                        List.of(),
                        Map.of(),
                        List.of(new Alarm(
                                "open-transaction", "rollouts-3", "stands still at 17", "kafka-transactions abort", 5)),
                        NOW));
        assertThat(new Doctor().findings(examination))
                .containsExactly(new Finding(
                        Weight.CRITICAL,
                        "alarm open-transaction",
                        "rollouts-3: stands still at 17",
                        "kafka-transactions abort"));
    }

    @Test
    void shouldNameAVersionThatContinuesNoChain() {
        Examination examination = new Examination(
                0,
                new Account(balance(WELL, List.of(), List.of()), 0, 0, 0, List.of()),
                OptionalLong.of(12),
                OptionalLong.of(1_000_000),
                Optional.empty(),
                HeldOut.NONE,
                new Examination.Observed(List.of(serving("g1", 12, NOW)), Map.of(), List.of(), NOW));
        assertThat(new Doctor().findings(examination)).singleElement().satisfies(finding -> {
            assertThat(finding.weight()).isEqualTo(Weight.WARNING);
            assertThat(finding.subject()).isEqualTo("versions");
            assertThat(finding.sentence())
                    .isEqualTo(
                            "a manifest names version 1000000, and the run's chain ends with version 12; it is ignored");
        });
    }

    @Test
    void shouldPutALedgerThatDoesNotAddUpBeforeEverythingElse() {
        List<Finding> findings = findings(
                balance(WELL, List.of(), List.of("batch 4 was trained on twice")),
                List.of(step(NOW, 0.1, Map.of())),
                List.of(serving("g1", 2, NOW)),
                Optional.of(diagnosis(Cause.VARIANCE_BLOW_UP, Fix.MASK_BAND)));
        assertThat(findings)
                .extracting(Finding::weight)
                .containsExactly(Weight.BROKEN, Weight.CRITICAL, Weight.CRITICAL, Weight.CRITICAL);
        assertThat(findings).extracting(Finding::subject).containsExactly("ledger", "off policy", "serving", "ESS");
        assertThat(findings.get(0).sentence()).endsWith("the first: batch 4 was trained on twice");
        assertThat(findings.get(2).sentence()).isEqualTo("generator g1 serves version 2, the newest is 12");
    }

    @Test
    void shouldCallARunStalledOnlyWhileSomebodyIsUp() {
        Balance waiting = balance(
                new Tally(10, 4, Map.of(), Map.of(), Map.of(), new Tally.Unfinished(0, 0, 6, 0, 0)),
                List.of(new OldestPending("a step on its batch", "0-1/0", NOW - 300_000)),
                List.of());
        List<TrainingStep> old = List.of(step(NOW - 300_000, 0.9, Map.of()));
        assertThat(findings(waiting, old, List.of(serving("g1", 12, NOW - 900_000)), Optional.empty()))
                .isEmpty();
        assertThat(findings(waiting, old, List.of(serving("g1", 12, NOW)), Optional.empty()))
                .extracting(Finding::sentence)
                .containsExactly(
                        "the last step, to version 12, was 300 s ago, and servers are running",
                        "rollout 0-1/0 has waited for a step on its batch for 300 s");
    }

    @Test
    void shouldSayWhichServerIsSilentWhileOthersAreNot() {
        assertThat(findings(
                        balance(WELL, List.of(), List.of()),
                        List.of(step(NOW, 0.9, Map.of())),
                        List.of(serving("g1", 12, NOW), serving("g2", 3, NOW - 120_000)),
                        Optional.empty()))
                .extracting(Finding::sentence)
                .containsExactly("the last heartbeat of generator g2 was 120 s ago");
    }

    @Test
    void shouldNameReasonsWhereMuchIsLost() {
        Tally lost = new Tally(
                1000,
                300,
                Map.of("m2po", 350L),
                Map.of("stale", 150L, "unscored", 50L),
                Map.of("reward", 150L),
                new Tally.Unfinished(0, 0, 0, 0, 0));
        assertThat(findings(balance(lost, List.of(), List.of()), List.of(), List.of(), Optional.empty()))
                .extracting(Finding::sentence)
                .containsExactly(
                        "150 of 1,000 rollouts were refused: reward 150",
                        "200 of 1,000 rollouts were dropped before a batch: stale 150, unscored 50",
                        "350 of 650 batched rollouts have no token left to train on: m2po 350");
    }

    @Test
    void shouldCountOneAsOne() {
        Tally one = new Tally(1000, 999, Map.of(), Map.of(), Map.of("reward", 1L), new Tally.Unfinished(0, 0, 0, 0, 0));
        assertThat(findings(
                        balance(one, List.of(), List.of("batch 4 was trained on twice")),
                        List.of(),
                        List.of(),
                        Optional.empty()))
                .extracting(Finding::sentence)
                .containsExactly(
                        "the ledger does not add up: 1 contradiction, the first: batch 4 was trained on twice",
                        "1 rollout (reward 1) and 0 other records were refused");
    }

    @Test
    void shouldBeginNoSentenceInLowerCaseWhateverTheCause() {
        for (Cause cause : Cause.values()) {
            for (Fix fix : Fix.values()) {
                Diagnosis diagnosis = diagnosis(cause, fix);
                assertThat(diagnosis.sentence()).as(cause + " and " + fix).doesNotContainPattern("[.] +[a-z]");
                assertThat(Doctor.offPolicy(diagnosis))
                        .allSatisfy(finding -> assertThat(finding.sentence() + " -> " + finding.advice())
                                .doesNotContainPattern("[.] +[a-z]"));
            }
        }
    }

    @Test
    void shouldReadTheStepsOwnStagesBeforeTheBatchs() {
        assertThat(ofSteps(
                        Map.of(
                                "stage.staleness.tokens_seen",
                                100.0,
                                "stage.staleness.tokens_changed",
                                30.0,
                                "recorded.stage.staleness.tokens_changed",
                                0.0,
                                "recorded.stage.order.length_bias",
                                0.5),
                        0.9))
                .extracting(Finding::subject)
                .containsExactly("staleness", "length");
        assertThat(ofSteps(Map.of("stage.grpo.sequences_seen", 256.0, "stage.grpo.zero_sequences", 200.0), 0.9))
                .extracting(Finding::sentence)
                .containsExactly("78 % of the rollouts of the only step had an advantage of 0");
    }

    @Test
    void shouldNameEveryBranchOfTheTreeAndEveryPitfall() {
        Diagnosis diagnosis = new Diagnosis(
                List.of(
                        new Branch(
                                Cause.ENGINE_MISMATCH,
                                List.of(new Evidence("|KL| per token at one version", 4, true, 0.05)),
                                Fix.ALIGN_TOKENS),
                        new Branch(
                                Cause.POLICY_STALENESS,
                                List.of(new Evidence("|KL| per token between the versions", 0.2, true, 0.05)),
                                Fix.LOWER_STALENESS)),
                Set.of(Pitfall.WIDENED_CLIP));
        List<Finding> findings = findings(
                balance(WELL, List.of(), List.of()),
                List.of(step(NOW, 0.9, Map.of())),
                List.of(),
                Optional.of(diagnosis));

        assertThat(findings).extracting(Finding::weight).containsExactly(Weight.BROKEN, Weight.WARNING, Weight.WARNING);
        assertThat(findings.get(0).sentence())
                .isEqualTo("engine mismatch (A): precision, kernels or engines differ: sampler and learner disagree at"
                        + " the same weights; |KL| per token at one version is 4.000, above 0.05000");
        assertThat(findings.get(1).sentence()).startsWith("policy staleness (B): ");
        assertThat(findings.get(2).sentence())
                .isEqualTo("the clip range was widened while more than a fifth of the tokens were clipped");
        assertThat(findings.get(2).advice()).isEqualTo("lower drift or update pressure first");
    }

    @Test
    void shouldCallARunSickThatTrainsOnFewOfItsTokens() {
        assertThat(ofCourse(course(10, i -> 70, i -> "" + i)))
                .extracting(Finding::weight, Finding::sentence)
                .containsExactly(
                        tuple(Weight.CRITICAL, "the last 10 steps trained on 7 % of their tokens: 700 of 10,000"));
        assertThat(ofCourse(course(10, i -> 500, i -> "" + i)))
                .extracting(Finding::weight)
                .containsExactly(Weight.WARNING);
        assertThat(ofCourse(course(10, i -> 750, i -> "" + i))).isEmpty();
    }

    @Test
    void shouldNameARunThatFroze() {
        assertThat(ofCourse(course(11, i -> i == 0 ? 1000 : 0, i -> "same")))
                .extracting(Finding::weight, Finding::subject, Finding::sentence)
                .contains(tuple(
                        Weight.CRITICAL,
                        "frozen",
                        "the last 10 steps did not change the weights; 10 of them had no token left to train on"));
        assertThat(ofCourse(course(11, i -> 1000, i -> "same")))
                .extracting(Finding::sentence)
                .containsExactly("the last 10 steps did not change the weights; all of them had tokens to train on");
        assertThat(ofCourse(course(11, i -> 1000, i -> i < 2 ? "" + i : "same")))
                .as("nine steps")
                .isEmpty();
        assertThat(ofCourse(course(11, i -> 1000, i -> "")))
                .as("unknown weights")
                .isEmpty();
    }

    @Test
    void shouldCountStarvedSteps() {
        assertThat(ofCourse(course(20, i -> i == 12 ? 0 : 1000, i -> "" + i)))
                .extracting(Finding::sentence)
                .containsExactly("1 of the last 10 steps had no token left to train on");
    }

    @Test
    void shouldTakeAnAbsentSampleSizeForAbsent() {
        TrainingStep starved = TrainingStep.newBuilder(step(NOW, 0.9, Map.of()))
                .setEssRatio(null)
                .build();

        assertThat(ofCourse(List.of(starved))).isEmpty();
        assertThat(ofCourse(List.of(starved, step(NOW, 0.2, Map.of()))))
                .extracting(Finding::sentence)
                .containsExactly("the effective sample size was 0.20 of the batch over the last 2 steps");
    }

    @Test
    void shouldNameAStageThatHasNotActedForFiftySteps() {
        assertThat(ofCourse(course(50, i -> 1000, i -> "" + i))).isEmpty(); // it acted at the first
        assertThat(ofCourse(course(51, i -> 1000, i -> "" + i)))
                .extracting(Finding::weight, Finding::sentence)
                .containsExactly(tuple(Weight.NOTE, "stage m2po has changed nothing in the last 50 steps"));
    }

    /** 1,280 tokens trained on, four times each. */
    @Test
    void shouldNotTakeTheEpochsOfAStepForTokensThatAreMasked() {
        assertThat(ofSteps(Map.of("stage.objective.tokens_seen", 5120.0, "stage.objective.tokens_changed", 100.0), 0.9))
                .isEmpty();
        assertThat(ofSteps(
                        Map.of(
                                "stage.m2po.tokens_seen",
                                2560.0,
                                "stage.m2po.tokens_changed",
                                1280.0,
                                "stage.objective.tokens_seen",
                                5120.0,
                                "stage.objective.tokens_changed",
                                100.0),
                        0.9))
                .singleElement()
                .satisfies(finding -> assertThat(finding.sentence())
                        .isEqualTo("the only step trained on 50 % of its tokens: 1,280 of 2,560"));
    }
}
