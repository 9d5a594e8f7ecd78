package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.DiagnosticBounds;
import dev.millrace.corrections.diagnostics.DiagnosticsStep;
import dev.millrace.corrections.diagnostics.OffPolicyDiagnostics;
import dev.millrace.corrections.diagnostics.OffPolicyReport;
import dev.millrace.corrections.diagnostics.PolicyGap;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Optional;

/**
 * What a batch shows before anything is corrected: proximal against behavior policy, in all and by lag, and one engine against
 * the other where both have scored.
 */
public final class BatchDiagnostics {
    private static final OffPolicyDiagnostics DIAGNOSTICS = new OffPolicyDiagnostics(DiagnosticBounds.DEFAULT);

    private BatchDiagnostics() {}

    /** A step for a diagnosis; empty if the batch has no trainable token. */
    public static Optional<DiagnosticsStep> of(BatchInput input) {
        if (input.tokens().trainedTokens() == 0) {
            return Optional.empty();
        }
        LogRatio anchor = input.logProbs().ratio(ComparedPolicies.ANCHOR);
        TokenBatch scored = MissingOldLogProbs.without(input.tokens(), input.withoutOld());
        if (scored.trainedTokens() == 0) { // only the newest tokens can stand for the engines
            return Optional.of(new DiagnosticsStep(
                    DIAGNOSTICS.compute(
                            input.versions(),
                            input.currentVersion(),
                            anchor,
                            input.tokens().mask()),
                    Optional.empty(),
                    Optional.empty()));
        }
        OffPolicyReport gap = DIAGNOSTICS.computeRatios(input.versions(), input.currentVersion(), anchor);
        Optional<PolicyGap> engines = Optional.of(DIAGNOSTICS
                .compute(scored, input.logProbs().ratio(ComparedPolicies.ENGINE_MISMATCH))
                .all());
        return Optional.of(new DiagnosticsStep(gap, engines, Optional.empty()));
    }
}
