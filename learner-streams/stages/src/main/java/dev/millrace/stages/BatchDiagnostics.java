package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.DiagnosticsStep;
import dev.millrace.corrections.diagnostics.OffPolicyDiagnostics;
import dev.millrace.corrections.length.LengthTrapReport;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.StageFacts;
import java.util.Arrays;
import java.util.Optional;

/**
 * Diagnostics of a batch's policies: proximal against behavior, overall and by lag, before and after the masks. With
 * old log-probs also one engine against the other at one version, and one version against the other in one engine.
 */
public final class BatchDiagnostics {

    private BatchDiagnostics() {}

    /** Diagnostics before the masks; empty if there is no trainable token. */
    public static Optional<DiagnosticsStep> of(StageFacts facts) {
        TokenBatch tokens = facts.tokens();
        if (tokens.trainedTokens() == 0) {
            return Optional.empty();
        }
        LogRatio anchor = facts.ratio(RatioKind.ANCHOR);
        TokenBatch scored = without(tokens, facts.withoutOld());
        if (scored.trainedTokens() == 0) { // only the newest tokens compare the engines
            return Optional.of(
                    DiagnosticsStep.of(OffPolicyDiagnostics.compute(facts.versions(), facts.version(), anchor)));
        }
        return Optional.of(new DiagnosticsStep(
                OffPolicyDiagnostics.computeRatios(facts.versions(), facts.version(), anchor),
                Optional.of(OffPolicyDiagnostics.compute(scored, facts.ratio(RatioKind.ENGINE_MISMATCH))
                        .all()),
                Optional.of(OffPolicyDiagnostics.computeRatios(scored, facts.ratio(RatioKind.STALENESS))
                        .all()),
                Optional.empty(),
                Optional.empty()));
    }

    /**
     * Adds the diagnostics after the masks.
     *
     * @param left the layout of {@code facts} under the remaining mask
     */
    public static DiagnosticsStep leaving(DiagnosticsStep step, StageFacts facts, TokenBatch left) {
        if (left.trainedTokens() == facts.tokens().trainedTokens()) {
            return step;
        }
        return new DiagnosticsStep(
                step.gap(),
                step.engines(),
                step.staleness(),
                left.trainedTokens() == 0
                        ? Optional.empty()
                        : Optional.of(OffPolicyDiagnostics.computeRatios(left, facts.ratio(RatioKind.ANCHOR))
                                .all()),
                Optional.of(LengthTrapReport.of(facts.tokens(), left.mask())));
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
