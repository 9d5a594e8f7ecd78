package dev.millrace.corrections.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** A synthetic run per cause: policies that differ accordingly are measured and diagnosed by the tree. */
class SyntheticRunsTest {
    private static final int SEQUENCES = 32;
    private static final int TOKENS = 64;
    private static final CorrectionInForce TOKEN_WEIGHTS =
            new CorrectionInForce(false, false, Optional.of(CorrectionUnit.TOKEN));

    private final Random random = new Random(17);
    private final TokenBatch batch = batch();

    private static TokenBatch batch() {
        int[] offsets = new int[SEQUENCES + 1];
        Arrays.setAll(offsets, s -> s * TOKENS);
        byte[] mask = new byte[SEQUENCES * TOKENS];
        Arrays.fill(mask, (byte) 1);
        return new TokenBatch(offsets, mask);
    }

    private float[] behavior() {
        float[] logProbs = new float[SEQUENCES * TOKENS];
        for (int t = 0; t < logProbs.length; t++) {
            logProbs[t] = (float) Math.log(0.001 + 0.5 * random.nextDouble());
        }
        return logProbs;
    }

    /** Log ratios of mean -spread^2/2, so that the mean ratio is 1, as between real policies. */
    private float[] apart(float[] from, double spread) {
        float[] to = new float[from.length];
        for (int t = 0; t < to.length; t++) {
            to[t] = (float) Math.min(0, from[t] + spread * random.nextGaussian() - spread * spread / 2);
        }
        return to;
    }

    private DiagnosticsStep step(double engines, double versions) {
        float[] behavior = behavior();
        float[] old = apart(behavior, engines);
        return step(behavior, old, apart(old, versions));
    }

    private DiagnosticsStep step(float[] behavior, float[] old, float[] proximal) {
        return new DiagnosticsStep(
                OffPolicyDiagnostics.compute(batch, LogRatio.anchor(proximal, behavior)),
                Optional.of(OffPolicyDiagnostics.compute(batch, LogRatio.engineMismatch(old, behavior))
                        .all()),
                Optional.of(OffPolicyDiagnostics.compute(batch, LogRatio.staleness(proximal, old))
                        .all()),
                Optional.empty(),
                Optional.empty());
    }

    private static StepFacts facts(double clipped, double tokens) {
        return new StepFacts(
                OptionalDouble.of(clipped),
                OptionalDouble.of(0.2),
                OptionalDouble.of(tokens),
                OptionalDouble.of(1e-3),
                Optional.of(new StepFacts.Power(1.1, 1)),
                OptionalDouble.empty(),
                OptionalDouble.empty());
    }

    private Diagnosis ofRun(CorrectionInForce inForce, double engines, double versions) {
        DiagnosticsCourse course = new DiagnosticsCourse(TreeBounds.DEFAULT);
        for (int i = 0; i < 120; i++) {
            course.add(i < 112 ? Optional.empty() : Optional.of(step(engines, versions)), facts(0.05, 60 + i % 5));
        }
        return course.diagnose(inForce).orElseThrow();
    }

    @Test
    void shouldFindNoMeaningfulDriftInAHealthyRun() {
        Diagnosis diagnosis = ofRun(TOKEN_WEIGHTS, 0.02, 0.05);

        assertThat(diagnosis.cause()).isEqualTo(Cause.NONE);
        assertThat(diagnosis.pitfalls()).isEmpty();
        assertThat(diagnosis.sentence()).startsWith("no meaningful drift; |KL| per token is ");
    }

    @Test
    void shouldFindNoMeaningfulDriftWherePoliciesAreTheSameBitForBit() {
        assertThat(ofRun(CorrectionInForce.NONE, 0, 0).cause()).isEqualTo(Cause.NONE);
    }

    @Test
    void shouldFindAnEngineMismatch() {
        Diagnosis diagnosis = ofRun(TOKEN_WEIGHTS, 0.5, 0.02);

        assertThat(diagnosis.cause()).isEqualTo(Cause.ENGINE_MISMATCH);
        assertThat(diagnosis.fix()).isEqualTo(Fix.ALIGN_ENGINES);
    }

    @Test
    void shouldFindThatOtherTokensWereScored() {
        float[] behavior = behavior();
        float[] shifted = new float[behavior.length];
        for (int t = 0; t < shifted.length; t++) {
            shifted[t] = behavior[(t + 1) % shifted.length] - 1.5f;
        }
        DiagnosticsCourse course = new DiagnosticsCourse(TreeBounds.DEFAULT);
        course.add(Optional.of(step(behavior, shifted, shifted)), StepFacts.NONE);

        assertThat(course.diagnose(TOKEN_WEIGHTS).orElseThrow().fix()).isEqualTo(Fix.ALIGN_TOKENS);
    }

    @Test
    void shouldFindPolicyStaleness() {
        Diagnosis diagnosis = ofRun(CorrectionInForce.NONE, 0.02, 0.4);

        assertThat(diagnosis.cause()).isEqualTo(Cause.POLICY_STALENESS);
        assertThat(diagnosis.branches()).hasSize(1);
        assertThat(ofRun(TOKEN_WEIGHTS, 0.02, 0.4).cause())
                .as("it is corrected, and most of the sample counts")
                .isEqualTo(Cause.NONE);
    }

    @Test
    void shouldFindAModerateTokenDrift() {
        float[] behavior = behavior();
        float[] proximal = behavior.clone();
        for (int t = 0; t < proximal.length; t += 16) { // a sixteenth of the tokens, three times as likely
            behavior[t] = -3;
            proximal[t] = -3 + (float) Math.log(3);
        }
        DiagnosticsStep drifted = new DiagnosticsStep(
                OffPolicyDiagnostics.compute(batch, LogRatio.anchor(proximal, behavior)),
                Optional.of(step(0.02, 0).gap().all()),
                Optional.empty(),
                Optional.empty(),
                Optional.empty());
        DiagnosticsCourse course = new DiagnosticsCourse(TreeBounds.DEFAULT);
        course.add(Optional.of(drifted), StepFacts.NONE);

        // (15 + 9) / 16 - 1 = 0.5, of a sample of (18 / 16)^2 / 1.5 = 0.84
        assertThat(course.diagnose(CorrectionInForce.NONE).orElseThrow().cause())
                .isEqualTo(Cause.TOKEN_DRIFT);
    }

    @Test
    void shouldFindAVarianceBlowUp() {
        Diagnosis diagnosis = ofRun(TOKEN_WEIGHTS, 0.02, 1.4);

        assertThat(diagnosis.branches())
                .extracting(Branch::cause)
                .containsExactly(Cause.VARIANCE_BLOW_UP, Cause.POLICY_STALENESS);
        assertThat(diagnosis.fix()).isEqualTo(Fix.MASK_BAND);
    }

    @Test
    void shouldFindAClipThatSaturates() {
        DiagnosticsCourse course = new DiagnosticsCourse(TreeBounds.DEFAULT);
        for (int i = 0; i < 120; i++) {
            course.add(Optional.of(step(0.02, 0.02)), facts(Math.max(0, 0.004 * (i - 60)), 60));
        }

        assertThat(course.diagnose(TOKEN_WEIGHTS).orElseThrow().cause()).isEqualTo(Cause.CLIP_SATURATION);
    }

    @Test
    void shouldFindASurgeOfLength() {
        DiagnosticsCourse course = new DiagnosticsCourse(TreeBounds.DEFAULT);
        for (int i = 0; i < 120; i++) {
            course.add(Optional.of(step(0.02, 0.02)), facts(0.05, 60 * Math.pow(1.003, i))); // 1.003^100 = 1.35
        }
        Diagnosis diagnosis = course.diagnose(TOKEN_WEIGHTS).orElseThrow();

        assertThat(diagnosis.cause()).isEqualTo(Cause.LENGTH_SURGE);
        assertThat(diagnosis.pitfalls()).containsExactly(Pitfall.UNGUARDED_SURGE);
    }
}
