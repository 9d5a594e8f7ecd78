package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.length.LengthTrapReport;
import java.util.Optional;

/**
 * Diagnostics of one batch's policies.
 *
 * @param gap proximal against behavior, in all and, if versions are known, by lag; as the data came, nothing rejected
 * @param engines old against behavior: one version of the weights, two engines; empty: tokens of lag 0 stand for it if
 *     lags are known
 * @param staleness proximal against old: one engine, two versions; empty without old log-probs
 * @param left proximal against behavior over the tokens that the masks left; empty if none is masked or none is left
 * @param lengths how rejection depends on length; empty if nothing rejects
 */
public record DiagnosticsStep(
        OffPolicyReport gap,
        Optional<PolicyGap> engines,
        Optional<PolicyGap> staleness,
        Optional<PolicyGap> left,
        Optional<LengthTrapReport> lengths) {

    /** Only a gap. */
    public static DiagnosticsStep of(OffPolicyReport gap) {
        return new DiagnosticsStep(gap, Optional.empty(), Optional.empty(), Optional.empty(), Optional.empty());
    }

    /** The engines compared at one version, as well as is known; empty if nothing of one version is. */
    Optional<PolicyGap> sameCheckpoint() {
        return engines.or(() -> Optional.ofNullable(gap.byLag().get(0L)));
    }

    /** The tokens that are trained on. */
    PolicyGap trainedOn() {
        return left.orElse(gap.all());
    }
}
