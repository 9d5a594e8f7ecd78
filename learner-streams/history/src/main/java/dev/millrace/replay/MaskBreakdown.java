package dev.millrace.replay;

import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Masked tokens by lag, masked sequences by length and advantage sign. Class widths double: 0, 1, 2-3, 4-7, each named
 * by its least member.
 *
 * @param sequencesBySign -1, 0, 1
 */
public record MaskBreakdown(
        SortedMap<Long, MaskedShare> tokensByLag,
        SortedMap<Long, MaskedShare> sequencesByLength,
        SortedMap<Long, MaskedShare> sequencesBySign) {

    public static MaskBreakdown empty() {
        return new MaskBreakdown(new TreeMap<>(), new TreeMap<>(), new TreeMap<>());
    }

    /** Least member of the value's class. */
    static long classOf(long value) {
        return value < 2 ? Math.max(0, value) : Long.highestOneBit(value);
    }

    public MaskBreakdown plus(MaskBreakdown other) {
        return new MaskBreakdown(
                sum(tokensByLag, other.tokensByLag),
                sum(sequencesByLength, other.sequencesByLength),
                sum(sequencesBySign, other.sequencesBySign));
    }

    private static SortedMap<Long, MaskedShare> sum(Map<Long, MaskedShare> a, Map<Long, MaskedShare> b) {
        SortedMap<Long, MaskedShare> sum = new TreeMap<>(a);
        b.forEach((key, share) -> sum.merge(key, share, MaskedShare::plus));
        return sum;
    }
}
