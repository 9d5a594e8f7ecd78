package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.length.LengthTrapReport;
import java.util.Optional;

/**
 * What was measured at one optimiser step.
 *
 * @param gap proximal against behavior, in all and, if versions are known, by lag
 * @param mismatch old against behavior, which compares the engines at one version; empty: the tokens of lag 0 stand
 *     for it, or everything if there are no lags
 * @param lengths how rejection depends on length; empty if nothing rejects
 */
public record DiagnosticsStep(OffPolicyReport gap, Optional<PolicyGap> mismatch, Optional<LengthTrapReport> lengths) {

    /** The engines compared at one version, as well as is known; empty if every token is stale. */
    Optional<PolicyGap> enginesAlone() {
        if (mismatch.isPresent()) {
            return mismatch;
        }
        return gap.byLag().isEmpty()
                ? Optional.of(gap.all())
                : Optional.ofNullable(gap.byLag().get(0L));
    }
}
