package dev.millrace.audit.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.audit.doctor.Examination.HeldOut;
import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.log.Evaluations;
import dev.millrace.schemas.EvaluatedPrompt;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.VersionEvaluation;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.IntToDoubleFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class HeldOutRulesTest {
    private static final int SAMPLES = 4;

    /** @param rewards mean reward of each prompt */
    private static VersionEvaluation evaluation(long version, Double startLogProb, double... rewards) {
        return VersionEvaluation.newBuilder()
                .setRunId("run-1")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(version)
                .setWeightsSha256("00")
                .setDataSha256("11")
                .setSamplesPerPrompt(SAMPLES)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 7L, false, 0, 0.0, false))
                .setCorrectAbove(0)
                .setPrompts(Arrays.stream(rewards)
                        .mapToObj(reward -> new EvaluatedPrompt(SAMPLES, 0, SAMPLES * reward, 8L, 0))
                        .toList())
                .setRewardMean(Arrays.stream(rewards).average().orElseThrow())
                .setPassAtK(List.of())
                .setDifficulties(List.of())
                .setTruncatedShare(0)
                .setStartLogProb(startLogProb)
                .setFailed(0)
                .setStartedAtMs(version)
                .setFinishedAtMs(version)
                .build();
    }

    private static List<TrainingStep> steps(int count, IntToDoubleFunction reward) {
        return IntStream.rangeClosed(1, count)
                .mapToObj(i -> TrainingStep.newBuilder()
                        .setRunId("run-1")
                        .setEpoch(0)
                        .setPolicyId("policy")
                        .setBatchId(i - 1)
                        .setVersion(i)
                        .setWeightsSha256("" + i)
                        .setRolloutsTrained(8)
                        .setRolloutsMasked(0)
                        .setTokensTrained(64)
                        .setRewardMean(reward.applyAsDouble(i))
                        .setStalenessMean(0.0)
                        .setStalenessMax(0L)
                        .setLearningRate(1e-3)
                        .setMetrics(Map.of())
                        .setStartedAtMs(i)
                        .setFinishedAtMs(i)
                        .build())
                .toList();
    }

    private static List<Finding> findings(List<TrainingStep> steps, boolean isBestKept, VersionEvaluation... all) {
        Balance balance = new Balance(
                new TreeMap<>(),
                0,
                new Balance.Unmatched(Map.of(), Map.of(), Map.of()),
                List.of(),
                List.of(),
                0,
                List.of());
        return new Doctor()
                .findings(new Examination(
                        0,
                        new Account(balance, 0, 0, 0, steps),
                        OptionalLong.of(steps.size()),
                        OptionalLong.empty(),
                        Optional.empty(),
                        new HeldOut(new Evaluations(List.of(all)), isBestKept),
                        Examination.Observed.NONE));
    }

    /**
     * Prompts 0, 2, 4, 6 choose version 20. On 1, 3, 5, 7 version 40 is lower by 0.25, 0.5, 0.25 and 0.5: mean 0.375,
     * standard deviation √(4 · 0.125² / 3) = 0.14434. The 97.5 % point of Student's distribution with 3 degrees of
     * freedom is 3.18245, so half the interval is 3.18245 · 0.14434 / 2 = 0.22967.
     */
    @Test
    void shouldSayThatTheRewardOnHeldOutPromptsFallsWhileThatInTrainingRises() {
        VersionEvaluation[] all = {
            evaluation(0, null, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            evaluation(20, null, 1.0, 0.75, 1.0, 1.0, 1.0, 0.75, 1.0, 1.0),
            evaluation(40, null, 0.75, 0.5, 0.75, 0.5, 0.75, 0.5, 0.75, 0.5)
        };
        // 0.5 + step/100 with one in two 0.02 higher: over steps 11 to 20 and 31 to 40 the means are 0.665 and 0.865
        List<Finding> found = findings(steps(40, i -> 0.5 + i / 100.0 + (i % 2 == 0 ? 0.02 : 0)), true, all);

        assertThat(found).singleElement().satisfies(finding -> {
            assertThat(finding.weight()).isEqualTo(Weight.CRITICAL);
            assertThat(finding.subject()).isEqualTo("held out");
            Matcher said = Pattern.compile(
                            "the reward on held-out prompts is (\\S+) lower at version 40 than at version 20"
                                    + " \\((\\S+) to (\\S+) with 95 %, over the 4 prompts that did not choose that version\\),"
                                    + " while the reward in training rose by (\\S+)")
                    .matcher(finding.sentence());
            assertThat(said.matches()).as(finding.sentence()).isTrue();
            assertThat(Double.parseDouble(said.group(1))).isEqualTo(0.375);
            assertThat(Double.parseDouble(said.group(2))).isEqualTo(0.375 - 0.22967, within(1e-3));
            assertThat(Double.parseDouble(said.group(3))).isEqualTo(0.375 + 0.22967, within(1e-3));
            assertThat(Double.parseDouble(said.group(4))).isEqualTo(0.2, within(5e-4));
            assertThat(finding.advice()).contains("millrace rollback --to-version 20");
        });
        assertThat(findings(steps(40, i -> 0.5 - i / 100.0), true, all))
                .singleElement()
                .satisfies(finding -> {
                    assertThat(finding.weight())
                            .as("it falls in training, too: no learning by heart")
                            .isEqualTo(Weight.WARNING);
                    assertThat(finding.sentence()).doesNotContain("training");
                });
    }

    /** Version 1 is 1 on the prompts that choose, and no better than the others on those that judge. */
    @Test
    void shouldSayNothingOfAVersionThatIsTheBestByChance() {
        assertThat(findings(
                        steps(40, i -> i / 40.0),
                        true,
                        evaluation(1, null, 1, 0.5, 1, 0.25, 1, 0.5, 1, 0.75),
                        evaluation(2, null, 0, 0.25, 0, 0.5, 0, 0.75, 0, 0.5)))
                .isEmpty();
    }

    @Test
    void shouldSayNothingOfASingleEvaluationNorOfARewardThatRises() {
        assertThat(findings(steps(40, i -> i / 40.0), true, evaluation(40, -1.0, 1, 1)))
                .isEmpty();
        List<VersionEvaluation> rising = new ArrayList<>();
        for (int version = 0; version <= 40; version += 10) {
            rising.add(evaluation(version, null, version / 80.0, 0.1 + version / 90.0, version / 70.0, version / 60.0));
        }
        assertThat(findings(steps(40, i -> i / 40.0), true, rising.toArray(VersionEvaluation[]::new)))
                .isEmpty();
    }

    /** −0.75 at the start, −2 in the end: 1.25 nats below, where 1 is the bound; at −1.75 it is 1, and not more than it. */
    @Test
    void shouldSayThatTheTextIsNoneThatTheStartWouldHaveWritten() {
        assertThat(findings(
                        steps(5, i -> 0.5),
                        true,
                        evaluation(0, -0.75, 0.5, 0.5),
                        evaluation(10, null, 0.5, 0.5),
                        evaluation(20, -2.0, 0.5, 0.5)))
                .singleElement()
                .satisfies(finding -> {
                    assertThat(finding.weight()).isEqualTo(Weight.WARNING);
                    assertThat(finding.subject()).isEqualTo("text");
                    assertThat(finding.sentence())
                            .isEqualTo("under the start model, a token of version 20 has a log-prob"
                                    + " of -2.000 on average, 1.250 nats below that of version 0 (more than 1)");
                });
        assertThat(findings(steps(5, i -> 0.5), true, evaluation(0, -0.75, 0.5, 0.5), evaluation(20, -1.75, 0.5, 0.5)))
                .isEmpty();
    }

    @Test
    void shouldNameTheBestVersionThatIsNotKept() {
        assertThat(findings(
                        steps(5, i -> 0.5), false, evaluation(2, null, 0.75, 0.25), evaluation(4, null, 0.25, 0.25)))
                .singleElement()
                .satisfies(finding -> {
                    assertThat(finding.subject()).isEqualTo("best version");
                    assertThat(finding.sentence())
                            .isEqualTo(
                                    "version 2, the best on held-out prompts (reward 0.500), was deleted from the log");
                    assertThat(finding.advice()).contains("topics.weights_retention_bytes=-1");
                });
    }
}
