package dev.millrace.learner;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.weights.Weights;
import java.util.function.Supplier;

/**
 * The policy that a run begins with.
 *
 * @param shape of the decoder; a resumed run must have the same
 * @param tokenizerHash identity of the vocabulary; likewise
 * @param seed of the run: an adapter, if one is trained, is initialised from it
 * @param source creates the initial weights; called only if the run has no version yet
 */
public record InitialPolicy(DecoderShape shape, String tokenizerHash, long seed, Supplier<Weights> source) {

    /** Random weights; the same seed gives the same bits. */
    public static InitialPolicy random(DecoderShape shape, String tokenizerHash, long seed) {
        return new InitialPolicy(shape, tokenizerHash, seed, () -> Weights.random(shape, seed));
    }

    /** The weights, made anew. */
    public Weights weights() {
        Weights weights = source.get();
        if (!weights.shape().equals(shape)) {
            throw new IllegalArgumentException(
                    "the initial weights have another shape: " + weights.shape() + ", not " + shape);
        }
        return weights;
    }
}
