package dev.millrace.corrections.diagnostics;

/**
 * When rejection alone is enough, when weights must be added, and when only changes to the systems help. These are the
 * survey's rules of thumb; calibrate them on a run that only measures.
 *
 * @param weighChiSquare above this token chi-square, tokens are weighed too: 2
 * @param systemsChiSquare above this one, no correction holds it: 4
 * @param weighRejected from this rejected share on, tokens are weighed too: 10 %
 * @param systemsRejected above this one, rejection discards too much: 25 %
 * @param systemsSampleSize below this effective sample size of the remaining tokens, no correction helps: 0.3
 * @param bandLimit above this share of tokens outside of a band, masking by it no longer suffices: 10 %
 */
public record EscalationBounds(
        double weighChiSquare,
        double systemsChiSquare,
        double weighRejected,
        double systemsRejected,
        double systemsSampleSize,
        double bandLimit) {
    public static final EscalationBounds DEFAULT = new EscalationBounds(2.0, 4.0, 0.10, 0.25, 0.3, 0.10);

    public EscalationBounds {
        requirePositive("weighChiSquare", weighChiSquare);
        requirePositive("systemsChiSquare", systemsChiSquare);
        requirePositive("weighRejected", weighRejected);
        requirePositive("systemsRejected", systemsRejected);
        requirePositive("systemsSampleSize", systemsSampleSize);
        requirePositive("bandLimit", bandLimit);
        if (weighChiSquare > systemsChiSquare || weighRejected > systemsRejected) {
            throw new IllegalArgumentException("weighing bounds must be below system bounds:"
                    + " weighChiSquare=" + weighChiSquare
                    + ", systemsChiSquare=" + systemsChiSquare + ", weighRejected=" + weighRejected
                    + ", systemsRejected=" + systemsRejected);
        }
    }

    /** The rungs. */
    public enum Rung {
        /** Rejection alone. */
        REJECT,
        /** Rejection and token weights. */
        REJECT_AND_WEIGH,
        /** Neither: the cause of the gap has to be fixed. */
        SYSTEMS
    }

    /**
     * Returns the needed rung.
     *
     * @param rejected share of the tokens that rejection takes out; 0 if none does
     * @param sampleSizeLeft effective sample size of what rejection leaves; 1 if none does
     */
    public Rung rung(double chiSquareToken, double rejected, double sampleSizeLeft) {
        if (chiSquareToken > systemsChiSquare || rejected > systemsRejected || sampleSizeLeft < systemsSampleSize) {
            return Rung.SYSTEMS;
        }
        return chiSquareToken > weighChiSquare || rejected >= weighRejected ? Rung.REJECT_AND_WEIGH : Rung.REJECT;
    }

    private static void requirePositive(String name, double bound) {
        if (!(bound > 0 && bound < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(name + " must be positive and finite: " + bound);
        }
    }
}
