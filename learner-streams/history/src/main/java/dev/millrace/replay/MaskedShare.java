package dev.millrace.replay;

/**
 * @param of trainable tokens, or sequences with some
 * @param masked not trained on
 */
public record MaskedShare(long of, long masked) {
    public static final MaskedShare NONE = new MaskedShare(0, 0);

    public MaskedShare plus(MaskedShare other) {
        return new MaskedShare(of + other.of, masked + other.masked);
    }

    /** 0 to 1; 0 of nothing. */
    public double fraction() {
        return of == 0 ? 0 : (double) masked / of;
    }
}
