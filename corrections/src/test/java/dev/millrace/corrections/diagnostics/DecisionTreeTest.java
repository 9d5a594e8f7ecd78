package dev.millrace.corrections.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.length.LengthTrapReport;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Causes made for real: policies that differ in the way the cause says, measured, and put to the tree. */
class DecisionTreeTest {
    private static final int SEQUENCES = 32;
    private static final int TOKENS = 64;
    private static final DecisionTree TREE = new DecisionTree(TreeBounds.DEFAULT);
    private static final OffPolicyDiagnostics DIAGNOSTICS = new OffPolicyDiagnostics(DiagnosticBounds.DEFAULT);

    private final Random random = new Random(17);
    private final float[] behavior = new float[SEQUENCES * TOKENS];
    private final float[] target = new float[SEQUENCES * TOKENS];

    private static TokenBatch batch(int sequences, int tokens) {
        int[] offsets = new int[sequences + 1];
        for (int s = 0; s < sequences; s++) {
            offsets[s + 1] = offsets[s] + tokens;
        }
        byte[] mask = new byte[sequences * tokens];
        Arrays.fill(mask, (byte) 1);
        return new TokenBatch(offsets, mask);
    }

    /** Log ratios of mean -spread^2/2, so that the mean ratio is 1 as it is between real policies. */
    private void drift(int from, int to, double spread) {
        for (int t = from; t < to; t++) {
            behavior[t] = (float) Math.log(1 - 0.999 * random.nextDouble()) - 1;
            target[t] = (float) (behavior[t] + spread * random.nextGaussian() - spread * spread / 2);
        }
    }

    private DiagnosticsStep step(double spread) {
        drift(0, behavior.length, spread);
        return measured();
    }

    private DiagnosticsStep measured() {
        OffPolicyReport report = DIAGNOSTICS.compute(batch(SEQUENCES, TOKENS), LogRatio.anchor(target, behavior));
        return new DiagnosticsStep(report, Optional.empty(), Optional.empty());
    }

    private static Diagnosis diagnose(CorrectionInForce inForce, DiagnosticsStep... steps) {
        return TREE.diagnose(new DiagnosticsWindow(List.of(steps), inForce));
    }

    @Test
    void shouldFindNothingBetweenEnginesInWorkingOrder() {
        Diagnosis diagnosis = diagnose(CorrectionInForce.NONE, step(0.01));

        assertThat(diagnosis.cause()).isEqualTo(Cause.NONE);
        assertThat(diagnosis.fix()).isEqualTo(Fix.NONE);
        assertThat(diagnosis.evidence().get(0).above()).isFalse();
    }

    @Test
    void shouldFindOtherTokens() {
        drift(0, behavior.length, 0);
        for (int t = 0; t < target.length; t++) { // scored against the neighbour's token
            target[t] = behavior[(t + 1) % target.length] - 1;
        }
        Diagnosis diagnosis = diagnose(CorrectionInForce.REJECTION_AND_WEIGHTS, measured());

        assertThat(diagnosis.cause()).isEqualTo(Cause.TOKEN_MISALIGNMENT);
        assertThat(diagnosis.fix()).isEqualTo(Fix.ALIGN_TOKENS);
        assertThat(diagnosis.sentence()).startsWith("A: the two policies were asked about different tokens");
    }

    @Test
    void shouldFindAnotherTemperature() {
        drift(0, behavior.length, 0);
        for (int t = 0; t < target.length; t++) { // behavior recorded at temperature 1, sampled and scored at 0.6
            target[t] = (float) (behavior[t] / 1.4 + 0.3);
        }
        Diagnosis diagnosis = diagnose(CorrectionInForce.NONE, measured());

        assertThat(diagnosis.cause()).isEqualTo(Cause.SAMPLING_MISMATCH);
        assertThat(diagnosis.fix()).isEqualTo(Fix.ALIGN_SAMPLING);
    }

    @Test
    void shouldEscalateFromRejectionToWeightsToTheEngines() {
        Diagnosis first = diagnose(CorrectionInForce.NONE, withMismatch(step(0.12)));
        drift(0, behavior.length, 0.7);
        DiagnosticsStep severe = withMismatch(measured());

        assertThat(first.cause()).isEqualTo(Cause.ENGINE_NUMERICS);
        assertThat(first.fix()).isEqualTo(Fix.REJECT);
        assertThat(diagnose(CorrectionInForce.REJECTION, severe).fix()).isEqualTo(Fix.REJECT_AND_WEIGH);
        assertThat(diagnose(CorrectionInForce.REJECTION_AND_WEIGHTS, severe).fix())
                .isEqualTo(Fix.ALIGN_ENGINES);
    }

    /** The same numbers with sequence weights that are all right, as of answers of one token. */
    private DiagnosticsStep withMismatch(DiagnosticsStep step) {
        OffPolicyReport tokens = DIAGNOSTICS.compute(batch(SEQUENCES * TOKENS, 1), LogRatio.anchor(target, behavior));
        return new DiagnosticsStep(tokens, Optional.of(step.gap().all()), Optional.empty());
    }

    @Test
    void shouldLeaveANotableGapToTheCorrectionThatIsInForce() {
        assertThat(diagnose(CorrectionInForce.REJECTION, withMismatch(step(0.12)))
                        .cause())
                .isEqualTo(Cause.NONE);
    }

    @Test
    void shouldBlameAgeWhereTheGapGrowsWithTheLag() {
        int half = behavior.length / 2;
        drift(0, half, 0.01);
        drift(half, behavior.length, 0.15);
        TokenBatch batch = batch(SEQUENCES, TOKENS);
        List<List<VersionSpan>> spans = new ArrayList<>();
        for (int s = 0; s < SEQUENCES; s++) {
            spans.add(List.of(new VersionSpan(s < SEQUENCES / 2 ? 8 : 2, 0, TOKENS)));
        }
        OffPolicyReport report = DIAGNOSTICS.compute(
                new BatchVersions(batch, spans), 8, LogRatio.anchor(target, behavior), batch.mask());
        Diagnosis diagnosis =
                diagnose(CorrectionInForce.NONE, new DiagnosticsStep(report, Optional.empty(), Optional.empty()));

        assertThat(diagnosis.cause()).isEqualTo(Cause.STALENESS);
        assertThat(diagnosis.fix()).isEqualTo(Fix.REJECT);
        assertThat(diagnosis.evidence().get(0).quantity()).isEqualTo("k3 at a lag of 6 versions");
    }

    @Test
    void shouldBlameLengthWhereTokensAreFineAndProductsAreNot() {
        Diagnosis diagnosis = diagnose(CorrectionInForce.REJECTION_AND_WEIGHTS, step(0.4));

        assertThat(diagnosis.cause()).isEqualTo(Cause.LENGTH_TRAP);
        assertThat(diagnosis.fix()).isEqualTo(Fix.NORMALIZE_LENGTH);
        assertThat(diagnosis.evidence()).hasSize(2);
    }

    @Test
    void shouldBlameLengthWhereLongAnswersAreRejectedMoreOften() {
        int[] offsets = new int[41];
        for (int s = 0; s < 40; s++) {
            offsets[s + 1] = offsets[s] + s + 1;
        }
        byte[] before = new byte[offsets[40]];
        Arrays.fill(before, (byte) 1);
        byte[] after = before.clone();
        Arrays.fill(after, offsets[20], offsets[40], (byte) 0); // the longer half is gone
        LengthTrapReport lengths = LengthTrapReport.of(new TokenBatch(offsets, before), after);

        Diagnosis diagnosis = diagnose(
                CorrectionInForce.REJECTION,
                new DiagnosticsStep(step(0.01).gap(), Optional.empty(), Optional.of(lengths)));

        assertThat(diagnosis.cause()).isEqualTo(Cause.LENGTH_TRAP);
        assertThat(diagnosis.evidence().get(0).value()).isEqualTo(1.0);
    }

    @Test
    void shouldSeeAGapThatFeedsOnItself() {
        DiagnosticsStep[] steps = {step(0.03), step(0.04), step(0.06), step(0.08), step(0.11), step(0.15)};

        assertThat(diagnose(CorrectionInForce.NONE, steps).cause()).isEqualTo(Cause.FEEDBACK);
        assertThat(diagnose(CorrectionInForce.NONE, steps).fix()).isEqualTo(Fix.REJECT);
        assertThat(diagnose(CorrectionInForce.REJECTION_AND_WEIGHTS, steps).fix())
                .isEqualTo(Fix.SLOW_DOWN);
        assertThat(diagnose(CorrectionInForce.NONE, steps).evidence())
                .extracting(Diagnosis.Evidence::quantity)
                .contains("its growth over the first half");
    }

    @Test
    void shouldRefuseWindowsWithoutData() {
        OffPolicyReport nothing = DIAGNOSTICS.compute(
                new TokenBatch(new int[] {0}, new byte[0]), LogRatio.anchor(new float[0], new float[0]));

        assertThatThrownBy(() -> new DiagnosticsWindow(List.of(), CorrectionInForce.NONE))
                .hasMessageContaining("at least one step");
        assertThatThrownBy(() -> new DiagnosticsWindow(
                        List.of(new DiagnosticsStep(nothing, Optional.empty(), Optional.empty())),
                        CorrectionInForce.NONE))
                .hasMessageContaining("step=0");
        assertThatThrownBy(() -> new TreeBounds(1, 0.5, 0.1, 0, 0.1, 1, 0.3, 4, 2))
                .hasMessageContaining("notableK3");
    }
}
