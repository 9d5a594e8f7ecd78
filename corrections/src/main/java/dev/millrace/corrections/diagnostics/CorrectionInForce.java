package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.CorrectionUnit;
import java.util.Optional;

/**
 * Corrections in force.
 *
 * @param rejects whether tokens or sequences that are too far off are left out
 * @param bands whether the weights of tokens outside of a band are 0
 * @param weighs what one importance weight is for, token or sequence; empty if nothing is weighed
 */
public record CorrectionInForce(boolean rejects, boolean bands, Optional<CorrectionUnit> weighs) {
    public static final CorrectionInForce NONE = new CorrectionInForce(false, false, Optional.empty());

    public boolean isAny() {
        return rejects || bands || weighs.isPresent();
    }

    boolean weighsSequences() {
        return weighs.filter(unit -> unit == CorrectionUnit.SEQUENCE).isPresent();
    }
}
