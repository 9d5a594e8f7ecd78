package dev.millrace.schemas.rollout;

import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;

/** Checks rows per trained position: k top tokens with a remainder, or kept tokens. */
public final class PositionRows {
    /** Tolerance: engines round each probability, some to 8 bits of mantissa. */
    private static final double MASS_ROUNDING = 0.02;

    private PositionRows() {}

    /**
     * Checks the shape of top log-probs, their ids against the vocabulary, and that each row sums to one.
     *
     * @param rows required number; -1 if not known yet
     * @param vocabularySize ids must be below this; 0 leaves it unchecked
     * @throws RefusedException naming the first violation
     */
    public static void requireTopLogProbs(TopLogProbs top, int rows, int vocabularySize, String field)
            throws RefusedException {
        int k = top.getK();
        if (k < 1) {
            throw new RefusedException(RefusalReason.LENGTHS, field + ".k", "k must be at least 1: " + k);
        }
        int there = VectorCheck.elements(top.getRemainderLogProbs(), field + ".remainder_log_probs");
        requireRows(there, rows < 0 ? there : rows, 1, field + ".remainder_log_probs");
        requireRows(VectorCheck.elements(top.getTokenIds(), field + ".token_ids"), there, k, field + ".token_ids");
        requireRows(VectorCheck.elements(top.getLogProbs(), field + ".log_probs"), there, k, field + ".log_probs");
        VectorCheck.requireTokenIds(top.getTokenIds(), vocabularySize, field + ".token_ids");
        for (int row = 0; row < there; row++) {
            requireMass(top, row, field);
        }
    }

    /** The number of rows follows from the mask, which a score lacks. */
    public static void requireRows(int elements, int rows, int each, String field) throws RefusedException {
        if (elements != (long) rows * each) {
            throw new RefusedException(
                    RefusalReason.LENGTHS,
                    field,
                    field + " must have " + each + " for each of " + rows + " trained tokens: " + elements);
        }
    }

    private static void requireMass(TopLogProbs top, int row, String field) throws RefusedException {
        double mass = probability(top.getRemainderLogProbs(), row, field + ".remainder_log_probs");
        for (int i = row * top.getK(); i < (row + 1) * top.getK(); i++) {
            mass += probability(top.getLogProbs(), i, field + ".log_probs");
        }
        if (!(Math.abs(mass - 1) <= MASS_ROUNDING)) { // negated so that NaN is refused too
            throw new RefusedException(
                    RefusalReason.LOG_PROBS,
                    field + "[" + row + "]",
                    "the " + top.getK() + " tokens and the remainder must have the whole probability: they have "
                            + mass);
        }
    }

    private static double probability(ByteBuffer logProbs, int index, String field) throws RefusedException {
        float logProb = PackedFloats.get(logProbs, index);
        if (!(logProb <= VectorCheck.LOG_PROB_ROUNDING)) {
            throw new RefusedException(
                    RefusalReason.LOG_PROBS,
                    field + "[" + index + "]",
                    "a log-prob must be at most 0, or -Infinity for an impossible token: " + logProb);
        }
        return Math.exp(logProb);
    }

    /**
     * Checks that kept tokens have one row per trained token that contains the sampled token.
     *
     * @throws RefusedException naming the first violation
     */
    static void requireKept(KeptSupport kept, ByteBuffer mask, ByteBuffer response, int vocabularySize, String field)
            throws RefusedException {
        String counts = field + ".counts";
        String ids = field + ".token_ids";
        requireRows(VectorCheck.elements(kept.getCounts(), counts), PackedMask.count(mask), 1, counts);
        int there = VectorCheck.elements(kept.getTokenIds(), ids);
        VectorCheck.requireTokenIds(kept.getTokenIds(), vocabularySize, ids);
        int row = 0;
        long at = 0;
        for (int t = 0; t < mask.remaining(); t++) {
            if (PackedMask.get(mask, t) == 1) {
                int count = PackedInts.get(kept.getCounts(), row);
                if (count < 1 || at + count > there) {
                    throw new RefusedException(
                            RefusalReason.LENGTHS,
                            counts + "[" + row + "]",
                            "a token is sampled from at least itself, and " + (there - at) + " kept ids are left: "
                                    + count);
                }
                requireAmong(kept.getTokenIds(), (int) at, count, PackedInts.get(response, t), ids);
                at += count;
                row++;
            }
        }
        if (at != there) {
            throw new RefusedException(
                    RefusalReason.LENGTHS,
                    ids,
                    "the counts add up to " + at + ", and there are " + there + " kept ids");
        }
    }

    private static void requireAmong(ByteBuffer ids, int from, int count, int sampled, String field)
            throws RefusedException {
        for (int i = from; i < from + count; i++) {
            if (PackedInts.get(ids, i) == sampled) {
                return;
            }
        }
        throw new RefusedException(
                RefusalReason.TOKENS,
                field + "[" + from + "]",
                "the sampled token " + sampled + " must be among the " + count + " that were kept");
    }
}
