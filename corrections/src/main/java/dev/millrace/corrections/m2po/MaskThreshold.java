package dev.millrace.corrections.m2po;

/**
 * Where the masked tokens begin: those with larger bits of m2 than {@code key} are masked, those with smaller are
 * kept, and of those with equal bits the first {@code tiesMasked} in packed order are masked.
 *
 * <p>Squares are not negative, so their bits are in the order of their values.
 */
record MaskThreshold(long key, int tiesMasked) {
    static final MaskThreshold NOTHING_MASKED = new MaskThreshold(Long.MAX_VALUE, 0);
}
