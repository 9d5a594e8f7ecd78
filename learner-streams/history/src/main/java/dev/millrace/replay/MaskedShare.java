package dev.millrace.replay;

/**
 * Of how many, how many were taken out.
 *
 * @param of trainable tokens, or sequences that have some
 * @param masked those of them that are not trained on
 */
public record MaskedShare(long of, long masked) {
    /** Of nothing, nothing. */
    public static final MaskedShare NONE = new MaskedShare(0, 0);

    /** Both together. */
    public MaskedShare plus(MaskedShare other) {
        return new MaskedShare(of + other.of, masked + other.masked);
    }

    /** Between 0 and 1; 0 of nothing. */
    public double fraction() {
        return of == 0 ? 0 : (double) masked / of;
    }
}
