package dev.millrace.corrections.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Diagnosis.Evidence;
import dev.millrace.corrections.length.LengthTrapReport;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;

/** Every branch on both sides of its bounds; all numbers are set by hand, those that are not are of a run in order. */
class DecisionTreeTest {
    private static final DecisionTree TREE = new DecisionTree(TreeBounds.DEFAULT);
    private static final CorrectionInForce NONE = CorrectionInForce.NONE;
    private static final CorrectionInForce REJECTION = new CorrectionInForce(true, false, Optional.empty());
    private static final CorrectionInForce BAND = new CorrectionInForce(false, true, Optional.of(CorrectionUnit.TOKEN));
    private static final CorrectionInForce TOKEN_WEIGHTS =
            new CorrectionInForce(false, false, Optional.of(CorrectionUnit.TOKEN));
    private static final CorrectionInForce SEQUENCE_WEIGHTS =
            new CorrectionInForce(false, false, Optional.of(CorrectionUnit.SEQUENCE));

    private static Gap gap() {
        return new Gap();
    }

    private static DiagnosticsStep step(Gap anchor, Gap engines, Gap versions) {
        return new DiagnosticsStep(
                new OffPolicyReport(anchor.made(), new TreeMap<>()),
                Optional.of(engines.made()),
                Optional.of(versions.made()),
                Optional.empty(),
                Optional.empty());
    }

    private static DiagnosticsStep anchored(Gap anchor) {
        return step(anchor, gap(), gap());
    }

    private static Diagnosis diagnose(CorrectionInForce inForce, DiagnosticsStep step, List<StepFacts> course) {
        return TREE.diagnose(new DiagnosticsWindow(List.of(step), course, inForce));
    }

    private static Diagnosis diagnose(CorrectionInForce inForce, DiagnosticsStep step) {
        return diagnose(inForce, step, List.of());
    }

    private static List<Cause> causes(Diagnosis diagnosis) {
        return diagnosis.branches().stream().map(Branch::cause).toList();
    }

    private static List<StepFacts> course(int steps, IntFunction<StepFacts> facts) {
        List<StepFacts> course = new ArrayList<>();
        for (int i = 0; i < steps; i++) {
            course.add(facts.apply(i));
        }
        return course;
    }

    private static StepFacts clipped(double fraction, double range) {
        return new StepFacts(
                OptionalDouble.of(fraction),
                OptionalDouble.of(range),
                OptionalDouble.empty(),
                OptionalDouble.empty(),
                Optional.empty(),
                OptionalDouble.empty(),
                OptionalDouble.empty());
    }

    private static StepFacts length(double tokens, double learningRate) {
        return new StepFacts(
                OptionalDouble.empty(),
                OptionalDouble.empty(),
                OptionalDouble.of(tokens),
                OptionalDouble.of(learningRate),
                Optional.empty(),
                OptionalDouble.empty(),
                OptionalDouble.empty());
    }

    private static StepFacts noise(double weighted, double unweighted) {
        return new StepFacts(
                OptionalDouble.empty(),
                OptionalDouble.empty(),
                OptionalDouble.empty(),
                OptionalDouble.empty(),
                Optional.of(new StepFacts.Power(weighted, unweighted)),
                OptionalDouble.empty(),
                OptionalDouble.empty());
    }

    private static StepFacts masked(OptionalDouble rejected, OptionalDouble banded) {
        return new StepFacts(
                OptionalDouble.empty(),
                OptionalDouble.empty(),
                OptionalDouble.empty(),
                OptionalDouble.empty(),
                Optional.empty(),
                rejected,
                banded);
    }

    private static List<StepFacts> rejecting(double share) {
        return List.of(masked(OptionalDouble.of(share), OptionalDouble.empty()));
    }

    @Test
    void shouldFindNoMeaningfulDriftInARunInOrder() {
        Diagnosis diagnosis =
                diagnose(NONE, anchored(gap().kl(0.019).chiSquare(0.3, 0.9)), course(120, i -> length(100, 1)));

        assertThat(diagnosis.isHealthy()).isTrue();
        assertThat(diagnosis.pitfalls()).isEmpty();
        assertThat(diagnosis.sentence())
                .isEqualTo("no meaningful drift; |KL| per token is 0.01900, below 0.02000; effective sample size is"
                        + " 0.9000, above 0.5000. To do: continue");
    }

    @Test
    void shouldBlameTheEnginesWhereTheyDisagreeAtOneVersion() {
        assertThat(causes(diagnose(NONE, step(gap(), gap().kl(0.05), gap())))).containsExactly(Cause.NONE);
        assertThat(diagnose(NONE, step(gap(), gap().kl(-0.0501), gap())).branches())
                .containsExactly(new Branch(
                        Cause.ENGINE_MISMATCH,
                        List.of(new Evidence("|KL| per token at one version", 0.0501, true, 0.05)),
                        Fix.ALIGN_ENGINES));
        assertThat(causes(diagnose(NONE, step(gap(), gap().probabilities(0.95, 0.01, 0.5), gap()))))
                .containsExactly(Cause.NONE);
        assertThat(causes(diagnose(NONE, step(gap(), gap().probabilities(0.9499, 0.01, 0.5), gap()))))
                .containsExactly(Cause.ENGINE_MISMATCH);
        assertThat(causes(diagnose(NONE, step(gap(), gap().perplexityRatio(Math.exp(0.051)), gap()))))
                .containsExactly(Cause.ENGINE_MISMATCH);
        assertThat(causes(diagnose(NONE, step(gap(), gap().perplexityRatio(Math.exp(-0.051)), gap()))))
                .containsExactly(Cause.ENGINE_MISMATCH);
        assertThat(causes(diagnose(NONE, step(gap(), gap().perplexityRatio(Math.exp(0.049)), gap()))))
                .containsExactly(Cause.NONE);
    }

    @Test
    void shouldNotTakeTheRoundingOfACertainPolicyForAMismatch() {
        assertThat(causes(diagnose(NONE, step(gap(), gap().probabilities(0.3, 0.001, 0.01), gap()))))
                .containsExactly(Cause.NONE);
        assertThat(causes(diagnose(NONE, step(gap(), gap().probabilities(0.3, 0.0011, 0.01), gap()))))
                .containsExactly(Cause.ENGINE_MISMATCH);
    }

    @Test
    void shouldConcludeNothingAboutEnginesFromFewTokens() {
        assertThat(causes(diagnose(NONE, step(gap(), gap().kl(3).tokens(99), gap()))))
                .containsExactly(Cause.NONE);
        assertThat(causes(diagnose(NONE, step(gap(), gap().kl(3).tokens(100), gap()))))
                .containsExactly(Cause.ENGINE_MISMATCH);
    }

    @Test
    void shouldSayWhatToAlign() {
        assertThat(diagnose(NONE, step(gap(), gap().kl(1.1), gap())).fix()).isEqualTo(Fix.ALIGN_TOKENS);
        assertThat(diagnose(NONE, step(gap(), gap().kl(0.3).meanWeight(1.2), gap()))
                        .fix())
                .isEqualTo(Fix.ALIGN_SAMPLING);
        assertThat(diagnose(NONE, step(gap(), gap().kl(0.3), gap())).fix()).isEqualTo(Fix.ALIGN_ENGINES);
    }

    @Test
    void shouldLookAtTheTokensOfLagZeroWhereThereAreNoOldLogProbs() {
        OffPolicyReport report = new OffPolicyReport(
                gap().made(), new TreeMap<>(Map.of(0L, gap().kl(0.2).made(), 3L, gap().made())));

        assertThat(causes(diagnose(NONE, DiagnosticsStep.of(report)))).containsExactly(Cause.ENGINE_MISMATCH);
    }

    @Test
    void shouldConcludeNothingFromTheGapOfEnginesThatDisagree() {
        assertThat(causes(diagnose(NONE, step(gap().kl(2).chiSquare(50, 0.1), gap().kl(0.2), gap()))))
                .containsExactly(Cause.ENGINE_MISMATCH);
        assertThat(causes(diagnose(NONE, step(gap().kl(2), gap().kl(0.2), gap().kl(0.2)))))
                .as("the versions are compared within one engine")
                .containsExactly(Cause.ENGINE_MISMATCH, Cause.POLICY_STALENESS);
    }

    @Test
    void shouldBlameAgeWhereOneEngineIsApartAtTwoVersions() {
        assertThat(causes(diagnose(NONE, step(gap(), gap(), gap().kl(0.05))))).containsExactly(Cause.NONE);
        assertThat(diagnose(NONE, step(gap(), gap(), gap().kl(0.051))).branches())
                .containsExactly(new Branch(
                        Cause.POLICY_STALENESS,
                        List.of(new Evidence("|KL| per token between the versions", 0.051, true, 0.05)),
                        Fix.LOWER_STALENESS));
        assertThat(causes(diagnose(NONE, step(gap(), gap(), gap().chiSquare(0.31, 0.9)))))
                .containsExactly(Cause.POLICY_STALENESS);
    }

    @Test
    void shouldGoOnWhereAgeIsCorrectedAndHalfOfTheSampleCounts() {
        assertThat(causes(diagnose(TOKEN_WEIGHTS, step(gap().chiSquare(0.2, 0.5), gap(), gap().kl(0.2)))))
                .containsExactly(Cause.NONE);
        assertThat(causes(diagnose(TOKEN_WEIGHTS, step(gap().chiSquare(0.2, 0.49), gap(), gap().kl(0.2)))))
                .containsExactly(Cause.VARIANCE_BLOW_UP, Cause.POLICY_STALENESS);
    }

    @Test
    void shouldBlameAgeByLagWhereThereAreNoOldLogProbs() {
        // the newest at 0.001 counts as 0.02, where drift begins: twice that is below the bound of drift, 0.05
        assertThat(causes(diagnose(NONE, byLag(0.001, 0.05)))).containsExactly(Cause.NONE);
        assertThat(diagnose(NONE, byLag(0.001, 0.051)).branches())
                .containsExactly(new Branch(
                        Cause.POLICY_STALENESS,
                        List.of(new Evidence("k3 per token at a lag of 6 versions", 0.051, true, 0.05)),
                        Fix.LOWER_STALENESS));
        assertThat(causes(diagnose(NONE, byLag(0.04, 0.08)))).containsExactly(Cause.NONE);
        assertThat(causes(diagnose(NONE, byLag(0.04, 0.081)))).containsExactly(Cause.POLICY_STALENESS);
    }

    private static DiagnosticsStep byLag(double newest, double oldest) {
        return DiagnosticsStep.of(new OffPolicyReport(
                gap().made(),
                new TreeMap<>(
                        Map.of(0L, gap().k3(newest).made(), 6L, gap().k3(oldest).made()))));
    }

    @Test
    void shouldCallADriftModerateWhileHalfOfTheSampleCounts() {
        assertThat(diagnose(NONE, anchored(gap().chiSquare(0.31, 0.5))).branches())
                .containsExactly(new Branch(
                        Cause.TOKEN_DRIFT, List.of(new Evidence("token chi-square", 0.31, true, 0.3)), Fix.REJECT));
        assertThat(causes(diagnose(NONE, anchored(gap().chiSquare(0.31, 0.49)))))
                .containsExactly(Cause.VARIANCE_BLOW_UP);
        assertThat(causes(diagnose(NONE, anchored(gap().chiSquare(1.0, 0.5))))).containsExactly(Cause.TOKEN_DRIFT);
        assertThat(causes(diagnose(NONE, anchored(gap().chiSquare(1.01, 0.5)))))
                .containsExactly(Cause.VARIANCE_BLOW_UP);
    }

    @Test
    void shouldJudgeWhatRejectionLeft() {
        DiagnosticsStep step = new DiagnosticsStep(
                new OffPolicyReport(gap().chiSquare(3, 0.2).made(), new TreeMap<>()),
                Optional.of(gap().made()),
                Optional.of(gap().made()),
                Optional.of(gap().chiSquare(0.2, 0.8).made()),
                Optional.empty());

        assertThat(causes(diagnose(REJECTION, step, rejecting(0.05)))).containsExactly(Cause.NONE);
    }

    @Test
    void shouldEscalateFromRejectionToWeightsToTheSystems() {
        assertThat(diagnose(NONE, anchored(gap().chiSquare(0.4, 0.7))).fix()).isEqualTo(Fix.REJECT);
        assertThat(causes(diagnose(REJECTION, anchored(gap()), rejecting(0.099))))
                .containsExactly(Cause.NONE);
        assertThat(diagnose(REJECTION, anchored(gap()), rejecting(0.10)).branches())
                .containsExactly(new Branch(
                        Cause.TOKEN_DRIFT,
                        List.of(new Evidence("share of the tokens that is rejected", 0.10, true, 0.10)),
                        Fix.REJECT_AND_WEIGH));
        assertThat(causes(diagnose(REJECTION, anchored(gap()), rejecting(0.25))))
                .containsExactly(Cause.TOKEN_DRIFT);
        assertThat(diagnose(REJECTION, anchored(gap()), rejecting(0.26)).branches())
                .containsExactly(new Branch(
                        Cause.VARIANCE_BLOW_UP,
                        List.of(new Evidence("share of the tokens that is rejected", 0.26, true, 0.25)),
                        Fix.MEND_SYSTEMS));
        assertThat(diagnose(REJECTION, anchored(gap().chiSquare(0.4, 0.31))).fix())
                .isEqualTo(Fix.MASK_BAND);
        assertThat(diagnose(REJECTION, anchored(gap().chiSquare(0.4, 0.29))).fix())
                .isEqualTo(Fix.MEND_SYSTEMS);
    }

    @Test
    void shouldTakeTheRungOfTheEscalationRule() {
        EscalationBounds bounds = EscalationBounds.DEFAULT;

        assertThat(bounds.rung(2.0, 0.099, 1)).isEqualTo(EscalationBounds.Rung.REJECT);
        assertThat(bounds.rung(2.01, 0, 1)).isEqualTo(EscalationBounds.Rung.REJECT_AND_WEIGH);
        assertThat(bounds.rung(4.0, 0, 1)).isEqualTo(EscalationBounds.Rung.REJECT_AND_WEIGH);
        assertThat(bounds.rung(4.01, 0, 1)).isEqualTo(EscalationBounds.Rung.SYSTEMS);
        assertThat(bounds.rung(0, 0.10, 1)).isEqualTo(EscalationBounds.Rung.REJECT_AND_WEIGH);
        assertThat(bounds.rung(0, 0.25, 1)).isEqualTo(EscalationBounds.Rung.REJECT_AND_WEIGH);
        assertThat(bounds.rung(0, 0.251, 1)).isEqualTo(EscalationBounds.Rung.SYSTEMS);
        assertThat(bounds.rung(0, 0, 0.3)).isEqualTo(EscalationBounds.Rung.REJECT);
        assertThat(bounds.rung(0, 0, 0.299)).isEqualTo(EscalationBounds.Rung.SYSTEMS);
    }

    @Test
    void shouldFilterBeforeItWeighsAndStopAtTheLimitOfABand() {
        DiagnosticsStep blown = anchored(gap().chiSquare(1.5, 0.4));

        assertThat(diagnose(NONE, blown).fix()).isEqualTo(Fix.MASK_BAND);
        assertThat(causes(diagnose(BAND, blown, banding(0.10))))
                .as("a band that masks little is what the branch asks for")
                .containsExactly(Cause.NONE);
        assertThat(diagnose(BAND, blown, banding(0.11)).branches())
                .containsExactly(new Branch(
                        Cause.VARIANCE_BLOW_UP,
                        List.of(new Evidence("share of the tokens outside of the band", 0.11, true, 0.10)),
                        Fix.MEND_SYSTEMS));
    }

    private static List<StepFacts> banding(double share) {
        return List.of(masked(OptionalDouble.empty(), OptionalDouble.of(share)));
    }

    @Test
    void shouldLookAtSequencesWhereSequencesAreWeighed() {
        DiagnosticsStep step = anchored(gap().sequences(9, 0.49));

        assertThat(causes(diagnose(TOKEN_WEIGHTS, step))).containsExactly(Cause.NONE);
        assertThat(diagnose(SEQUENCE_WEIGHTS, step).branches())
                .containsExactly(new Branch(
                        Cause.VARIANCE_BLOW_UP,
                        List.of(new Evidence("effective sample size of the sequences", 0.49, false, 0.5)),
                        Fix.MASK_BAND));
        assertThat(diagnose(SEQUENCE_WEIGHTS, step).pitfalls()).containsExactly(Pitfall.SEQUENCE_WEIGHTS);
        assertThat(diagnose(SEQUENCE_WEIGHTS, anchored(gap().sequences(10.1, 0.6)))
                        .evidence())
                .containsExactly(new Evidence("sequence chi-square", 10.1, true, 10));
        assertThat(diagnose(SEQUENCE_WEIGHTS, anchored(gap().sequences(10, 0.5)))
                        .pitfalls())
                .isEmpty();
    }

    @Test
    void shouldBlameWeightsThatDoubleTheNoiseOfTheGradient() {
        assertThat(causes(diagnose(TOKEN_WEIGHTS, anchored(gap()), course(8, i -> noise(2.0, 1.0)))))
                .containsExactly(Cause.NONE);
        assertThat(diagnose(TOKEN_WEIGHTS, anchored(gap()), course(8, i -> noise(2.1, 1.0)))
                        .branches())
                .containsExactly(new Branch(
                        Cause.VARIANCE_BLOW_UP,
                        List.of(new Evidence("noise of the gradient over that without weights", 2.1, true, 2)),
                        Fix.MASK_BAND));
        assertThat(causes(diagnose(NONE, anchored(gap()), course(8, i -> noise(2.1, 1.0)))))
                .as("nothing is weighed")
                .containsExactly(Cause.NONE);
        assertThat(causes(diagnose(TOKEN_WEIGHTS, anchored(gap()), course(8, i -> noise(1e-9, 0)))))
                .as("nothing is divided by nothing")
                .containsExactly(Cause.NONE);
    }

    @Test
    void shouldSeeAClipThatSaturates() {
        List<StepFacts> flat = course(8, i -> clipped(0.3, 0.2));
        List<StepFacts> rising = course(8, i -> clipped(i < 4 ? 0.19 : 0.21, 0.2)); // 0.21 > 1.05 * 0.19 = 0.1995
        List<StepFacts> low = course(8, i -> clipped(i < 4 ? 0.1 : 0.2, 0.2));

        assertThat(causes(diagnose(NONE, anchored(gap()), flat))).containsExactly(Cause.NONE);
        assertThat(causes(diagnose(NONE, anchored(gap()), low))).containsExactly(Cause.NONE);
        Diagnosis diagnosis = diagnose(NONE, anchored(gap()), rising);
        assertThat(causes(diagnosis)).containsExactly(Cause.CLIP_SATURATION);
        assertThat(diagnosis.fix()).isEqualTo(Fix.LOWER_PRESSURE);
        assertThat(diagnosis.evidence())
                .contains(new Evidence("clipped share of the tokens", 0.21, true, 0.2))
                .hasSize(2);
        assertThat(diagnosis.first().finding())
                .endsWith(
                        "is too large; clipped share of the tokens is 0.2100, above 0.2000; the same, against 1.05 times that"
                                + " before it, is 0.2100, above 0.1995");
        assertThat(causes(diagnose(NONE, anchored(gap()), rising.subList(3, 6))))
                .as("three steps have no trend")
                .containsExactly(Cause.NONE);
    }

    @Test
    void shouldSeeASurgeOfLengthOverAHundredSteps() {
        // 8 steps of 100 tokens, 92 in between, 8 steps at the end
        List<StepFacts> fifth = course(108, i -> length(i < 100 ? 100 : 120, 1));
        List<StepFacts> more = course(108, i -> length(i < 100 ? 100 : 120.1, 1));

        assertThat(causes(diagnose(NONE, anchored(gap()), fifth))).containsExactly(Cause.NONE);
        Diagnosis surge = diagnose(NONE, anchored(gap()), more);
        assertThat(causes(surge)).containsExactly(Cause.LENGTH_SURGE);
        assertThat(surge.fix()).isEqualTo(Fix.SLOW_DOWN);
        assertThat(surge.evidence()).hasSize(1);
        assertThat(surge.evidence().get(0).value()).isCloseTo(1.201, within(1e-12));
        assertThat(surge.pitfalls()).containsExactly(Pitfall.UNGUARDED_SURGE);
        assertThat(causes(diagnose(NONE, anchored(gap()), more.subList(1, 108))))
                .as("there are not a hundred steps before the last eight")
                .containsExactly(Cause.NONE);
    }

    @Test
    void shouldNotCallASurgeUnguardedThatASmallerStepAnswers() {
        List<StepFacts> guarded = course(108, i -> length(i < 100 ? 100 : 130, i < 100 ? 1 : 0.5));

        assertThat(diagnose(NONE, anchored(gap()), guarded).pitfalls()).isEmpty();
    }

    @Test
    void shouldTellGrowthOfTheGapBesideASurgeFromWhereDriftBegins() {
        List<StepFacts> surge = course(108, i -> length(i < 100 ? 100 : 130, 1));
        List<DiagnosticsStep> tiny = List.of(anchored(gap().k3(1e-12)), anchored(gap().k3(0.0139)));
        List<DiagnosticsStep> grown = List.of(anchored(gap().k3(1e-12)), anchored(gap().k3(0.03)));

        assertThat(TREE.diagnose(new DiagnosticsWindow(tiny, surge, NONE)).evidence())
                .as("a gap that is no drift has not grown by ten orders of magnitude")
                .hasSize(1);
        Evidence growth = TREE.diagnose(new DiagnosticsWindow(grown, surge, NONE))
                .evidence()
                .get(1);
        assertThat(growth.value()).isEqualTo(1.5); // 0.03 / 0.02
    }

    @Test
    void shouldNameEveryBranchThatHoldsTheMostSevereFirst() {
        List<StepFacts> surge = course(108, i -> length(i < 100 ? 100 : 130, 1));
        Diagnosis diagnosis = diagnose(NONE, step(gap().chiSquare(2, 0.3), gap(), gap().kl(0.3)), surge);

        assertThat(causes(diagnosis))
                .containsExactly(Cause.VARIANCE_BLOW_UP, Cause.LENGTH_SURGE, Cause.POLICY_STALENESS);
        assertThat(diagnosis.sentence())
                .startsWith("importance-weight variance blow-up (D): a few weights dominate the step")
                .endsWith(". Also: optimizer amplification (F), policy staleness (B)");
    }

    @Test
    void shouldNameTheMistakeOfTakingAGapForLearningThatNobodyComparedAtOneVersion() {
        DiagnosticsStep unchecked =
                DiagnosticsStep.of(new OffPolicyReport(gap().kl(0.051).made(), new TreeMap<>()));
        DiagnosticsStep little =
                DiagnosticsStep.of(new OffPolicyReport(gap().kl(0.05).made(), new TreeMap<>()));

        assertThat(diagnose(NONE, unchecked).pitfalls()).containsExactly(Pitfall.UNCHECKED_AGREEMENT);
        assertThat(diagnose(NONE, little).pitfalls()).isEmpty();
        assertThat(diagnose(NONE, anchored(gap().kl(0.051))).pitfalls()).isEmpty();
    }

    @Test
    void shouldNameTheMistakeOfWideningTheClipWhileMuchIsClipped() {
        List<StepFacts> widened = List.of(clipped(0.21, 0.2), clipped(0.1, 0.28));
        List<StepFacts> early = List.of(clipped(0.2, 0.2), clipped(0.1, 0.28));
        List<StepFacts> narrowed = List.of(clipped(0.5, 0.28), clipped(0.6, 0.2));

        assertThat(diagnose(NONE, anchored(gap()), widened).pitfalls()).containsExactly(Pitfall.WIDENED_CLIP);
        assertThat(diagnose(NONE, anchored(gap()), early).pitfalls()).isEmpty();
        assertThat(diagnose(NONE, anchored(gap()), narrowed).pitfalls()).isEmpty();
    }

    @Test
    void shouldNameTheMistakeOfAveragingASpikeAway() {
        Diagnosis spike = diagnose(NONE, step(gap(), gap().probabilities(0.995, 0.002, 0.51), gap()));

        assertThat(spike.pitfalls()).containsExactly(Pitfall.AVERAGED_SPIKE);
        assertThat(spike.branches())
                .containsExactly(new Branch(
                        Cause.ENGINE_MISMATCH,
                        List.of(new Evidence("largest difference of a probability at one version", 0.51, true, 0.5)),
                        Fix.ALIGN_ENGINES));
        assertThat(diagnose(NONE, step(gap(), gap().probabilities(0.98, 0.002, 0.51), gap()))
                        .pitfalls())
                .as("the averages show it too")
                .isEmpty();
    }

    @Test
    void shouldNameARejectionThatIsOneOfLength() {
        int[] offsets = new int[41];
        for (int s = 0; s < 40; s++) {
            offsets[s + 1] = offsets[s] + s + 1;
        }
        byte[] before = new byte[offsets[40]];
        Arrays.fill(before, (byte) 1);
        byte[] after = before.clone();
        Arrays.fill(after, offsets[20], offsets[40], (byte) 0); // the longer half is gone
        LengthTrapReport lengths = LengthTrapReport.of(new TokenBatch(offsets, before), after);
        DiagnosticsStep step = new DiagnosticsStep(
                new OffPolicyReport(gap().made(), new TreeMap<>()),
                Optional.of(gap().made()),
                Optional.empty(),
                Optional.empty(),
                Optional.of(lengths));

        assertThat(diagnose(REJECTION, step).pitfalls()).containsExactly(Pitfall.LENGTH_TRAP);
    }

    @Test
    void shouldRefuseWindowsWithoutDataAndBoundsWithoutMeaning() {
        OffPolicyReport nothing = OffPolicyDiagnostics.compute(
                new TokenBatch(new int[] {0}, new byte[0]), LogRatio.anchor(new float[0], new float[0]));

        assertThatThrownBy(() -> new DiagnosticsWindow(List.of(), List.of(), NONE))
                .hasMessageContaining("at least one step");
        assertThatThrownBy(() -> new DiagnosticsWindow(List.of(DiagnosticsStep.of(nothing)), List.of(), NONE))
                .hasMessageContaining("step=0");
        assertThatThrownBy(() -> new EscalationBounds(5, 4, 0.1, 0.25, 0.3, 0.1))
                .hasMessageContaining("weighChiSquare=5");
        assertThatThrownBy(() -> new EscalationBounds(2, 4, 0.1, Double.NaN, 0.3, 0.1))
                .hasMessageContaining("systemsRejected");
        assertThatThrownBy(() -> new Diagnosis(List.of(), Collections.emptySet()))
                .hasMessageContaining("at least one branch");
    }
}
