package dev.millrace.replay;

import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Whom corrections take out: tokens by how many versions they are behind, sequences by their length and by the sign of
 * their advantage. Classes are of doubling width: 0, 1, 2-3, 4-7, and so on, each named by its least.
 *
 * @param tokensByLag tokens, by the least lag of their class, in versions
 * @param sequencesByLength sequences, by the least length of their class, in response tokens
 * @param sequencesBySign sequences, by the sign of their advantage: -1, 0, 1
 */
public record MaskBreakdown(
        SortedMap<Long, MaskedShare> tokensByLag,
        SortedMap<Long, MaskedShare> sequencesByLength,
        SortedMap<Long, MaskedShare> sequencesBySign) {

    public MaskBreakdown {
        tokensByLag = Collections.unmodifiableSortedMap(new TreeMap<>(tokensByLag));
        sequencesByLength = Collections.unmodifiableSortedMap(new TreeMap<>(sequencesByLength));
        sequencesBySign = Collections.unmodifiableSortedMap(new TreeMap<>(sequencesBySign));
    }

    /** Of nothing. */
    public static MaskBreakdown empty() {
        return new MaskBreakdown(new TreeMap<>(), new TreeMap<>(), new TreeMap<>());
    }

    /** The least member of a value's class. */
    static long classOf(long value) {
        return value < 2 ? Math.max(0, value) : Long.highestOneBit(value);
    }

    /** Both together. */
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
