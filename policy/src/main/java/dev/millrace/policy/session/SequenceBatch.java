package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import org.jspecify.annotations.Nullable;

/**
 * Ragged token sequences, each with the index of the first token to score.
 *
 * <p>Results are packed: sequence after sequence, one value per token {@code firstScored .. length-1}, environment
 * tokens included (the caller masks them). A sequence sampled with truncation may carry its
 * {@link SampledSupport}; a session then computes its results from the softmax over these tokens. The arrays are not
 * copied and must not change while a session reads them.
 */
public final class SequenceBatch {
    private final int[][] tokens;
    private final int[] firstScored;
    private final int[] offsets;
    private final @Nullable SampledSupport[] kept;
    private final @Nullable RoutedExperts[] routing;

    /** A batch over the whole vocabulary; parameters as below. */
    public SequenceBatch(int[][] tokens, int[] firstScored) {
        this(tokens, firstScored, new SampledSupport[tokens.length]);
    }

    /**
     * @param tokens      token ids, one array per sequence, none empty
     * @param firstScored per sequence the index of the first token whose log-prob is wanted; at least 1, since the
     * first token has no prediction, and at most the length, which scores none
     * @param kept        per sequence its kept tokens; null for the whole vocabulary
     */
    public SequenceBatch(int[][] tokens, int[] firstScored, @Nullable SampledSupport[] kept) {
        this(tokens, firstScored, kept, new RoutedExperts[tokens.length]);
    }

    private SequenceBatch(
            int[][] tokens, int[] firstScored, @Nullable SampledSupport[] kept, @Nullable RoutedExperts[] routing) {
        if (tokens.length != firstScored.length || tokens.length != kept.length) {
            throw new IllegalArgumentException("one firstScored and one entry of kept per sequence: "
                    + firstScored.length + " and " + kept.length + " for " + tokens.length + " sequences");
        }
        if (routing.length != tokens.length) {
            throw new IllegalArgumentException(
                    "one entry of routing per sequence: " + routing.length + " for " + tokens.length + " sequences");
        }
        this.kept = kept;
        this.routing = routing;
        this.tokens = tokens;
        this.firstScored = firstScored;
        this.offsets = new int[tokens.length + 1];
        for (int s = 0; s < tokens.length; s++) {
            if (firstScored[s] < 1 || firstScored[s] > tokens[s].length) {
                throw new IllegalArgumentException("firstScored must be at least 1 and at most the length "
                        + tokens[s].length + ": firstScored=" + firstScored[s] + " of sequence " + s);
            }
            offsets[s + 1] = Math.addExact(offsets[s], tokens[s].length - firstScored[s]);
            SampledSupport rows = kept[s];
            if (rows != null && rows.tokens() != tokens[s].length - firstScored[s]) {
                throw new IllegalArgumentException("one row of kept tokens per scored token: " + rows.tokens() + " for "
                        + (tokens[s].length - firstScored[s]) + " of sequence " + s);
            }
        }
    }

    /**
     * The same sequences with replayed experts instead of the router's choice.
     *
     * @param replayed per sequence; null is the router's own choice, as are unrecorded entries
     */
    public SequenceBatch routed(@Nullable RoutedExperts[] replayed) {
        return new SequenceBatch(tokens, firstScored, kept, replayed);
    }

    public int sequenceCount() {
        return tokens.length;
    }

    public int length(int sequence) {
        return tokens[sequence].length;
    }

    /** @throws IllegalArgumentException naming the first sequence that a decoder of this shape cannot take */
    public void requireFits(DecoderShape shape) {
        for (int s = 0; s < tokens.length; s++) {
            requireFits(s, shape);
        }
    }

    private void requireFits(int sequence, DecoderShape shape) {
        if (length(sequence) > shape.maxPositions()) {
            throw new IllegalArgumentException("sequence " + sequence + " has " + length(sequence)
                    + " tokens, more than the model's maxPositions=" + shape.maxPositions());
        }
        for (int t = 0; t < length(sequence); t++) {
            int token = token(sequence, t);
            if (token < 0 || token >= shape.vocabSize()) {
                throw new IllegalArgumentException("token " + token + " at position " + t + " of sequence " + sequence
                        + " is outside the vocabulary of " + shape.vocabSize());
            }
        }
        RoutedExperts routed = routing[sequence];
        if (routed != null) {
            routed.require(shape, "sequence " + sequence);
        }
        SampledSupport rows = kept[sequence];
        if (rows != null) {
            int first = firstScored(sequence);
            for (int t = first; t < length(sequence); t++) {
                rows.requireRow(t - first, token(sequence, t), shape.vocabSize(), sequence);
            }
        }
    }

    public int token(int sequence, int position) {
        return tokens[sequence][position];
    }

    public int firstScored(int sequence) {
        return firstScored[sequence];
    }

    /** Kept tokens of a sequence; null for the whole vocabulary. */
    public @Nullable SampledSupport kept(int sequence) {
        return kept[sequence];
    }

    /** Replayed experts of a sequence; null for the router's own choice. */
    public @Nullable RoutedExperts routing(int sequence) {
        return routing[sequence];
    }

    /** Where the packed values of a sequence begin; {@code offset(sequenceCount())} is where the last one ends. */
    public int offset(int sequence) {
        return offsets[sequence];
    }

    /** Packed values in all. */
    public int scoredCount() {
        return offsets[tokens.length];
    }
}
