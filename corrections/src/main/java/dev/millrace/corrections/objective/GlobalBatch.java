package dev.millrace.corrections.objective;

/**
 * What a loss is divided by when the batch at hand is one part of a larger one: parts of one optimizer step then add up
 * to the loss of the whole.
 *
 * @param tokens trained tokens of the whole, or {@link #OF_THIS_BATCH}; a part's share of tokens that a mask took away
 *     need not be a whole number
 * @param sequences sequences of the whole, likewise
 * @param shards how many equal learners will average their gradients; the loss is multiplied by it
 */
public record GlobalBatch(double tokens, double sequences, int shards) {
    /** Counted in the batch at hand. Allowed only if there is one shard: otherwise the parts would not add up. */
    public static final long OF_THIS_BATCH = -1;
    /** The batch at hand is the whole. */
    public static final GlobalBatch WHOLE = new GlobalBatch(OF_THIS_BATCH, OF_THIS_BATCH, 1);

    public GlobalBatch {
        requireCount("tokens", tokens);
        requireCount("sequences", sequences);
        if (shards < 1) {
            throw new IllegalArgumentException("shards must be at least 1: " + shards);
        }
    }

    double tokensOr(long counted) {
        return countOr("tokens", tokens, counted);
    }

    double sequencesOr(long counted) {
        return countOr("sequences", sequences, counted);
    }

    private double countOr(String what, double given, long counted) {
        if (given != OF_THIS_BATCH) {
            return given;
        }
        if (shards > 1) {
            throw new IllegalArgumentException("with " + shards + " shards the " + what
                    + " of the whole batch must be given: each shard alone would divide by its own count");
        }
        if (counted == 0) {
            throw new IllegalArgumentException("no trained token in the batch: a mean over no " + what
                    + " has no value; skip the batch, or give the " + what + " of the whole batch");
        }
        return counted;
    }

    private static void requireCount(String what, double count) {
        if (count != OF_THIS_BATCH && !(count >= 1 && count < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(what + " of the whole batch must be at least 1: " + count);
        }
    }
}
