package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.DiagnosticBounds;
import dev.millrace.corrections.diagnostics.DiagnosticsStep;
import dev.millrace.corrections.diagnostics.OffPolicyDiagnostics;
import dev.millrace.corrections.diagnostics.OffPolicyReport;
import dev.millrace.corrections.diagnostics.PolicyGap;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.StageFacts;
import java.util.Arrays;
import java.util.Optional;

/**
 * What a batch shows before anything is corrected: proximal against behavior policy, in all and by lag, and one engine against
 * the other where both have scored.
 */
public final class BatchDiagnostics {
    private static final OffPolicyDiagnostics DIAGNOSTICS = new OffPolicyDiagnostics(DiagnosticBounds.DEFAULT);

    private BatchDiagnostics() {}

    /** A step for a diagnosis; empty if the batch has no trainable token. */
    public static Optional<DiagnosticsStep> of(StageFacts facts) {
        TokenBatch tokens = facts.tokens();
        if (tokens.trainedTokens() == 0) {
            return Optional.empty();
        }
        LogRatio anchor = facts.ratio(RatioKind.ANCHOR);
        TokenBatch scored = without(tokens, facts.withoutOld());
        if (scored.trainedTokens() == 0) { // only the newest tokens can stand for the engines
            return Optional.of(new DiagnosticsStep(
                    DIAGNOSTICS.compute(facts.versions(), facts.version(), anchor, tokens.mask()),
                    Optional.empty(),
                    Optional.empty()));
        }
        OffPolicyReport gap = DIAGNOSTICS.computeRatios(facts.versions(), facts.version(), anchor);
        Optional<PolicyGap> engines = Optional.of(DIAGNOSTICS
                .compute(scored, facts.ratio(RatioKind.ENGINE_MISMATCH))
                .all());
        return Optional.of(new DiagnosticsStep(gap, engines, Optional.empty()));
    }

    /** The layout with the marked sequences masked. */
    private static TokenBatch without(TokenBatch tokens, boolean[] marked) {
        byte[] mask = tokens.mask();
        for (int s = 0; s < marked.length; s++) {
            if (marked[s]) {
                Arrays.fill(mask, tokens.start(s), tokens.end(s), (byte) 0);
            }
        }
        return tokens.withMask(mask);
    }
}
