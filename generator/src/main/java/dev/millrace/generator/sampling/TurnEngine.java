package dev.millrace.generator.sampling;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.weights.NewestWeights;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;

/** Samples answers to token prompts for callers that play the environment themselves. Thread-safe. */
public interface TurnEngine extends AutoCloseable {

    @FunctionalInterface
    interface TokenListener {
        TokenListener NONE = (tokens, logProbs) -> {};

        /**
         * Called by the engine's thread, which waits for it.
         *
         * @param tokens the newest ones, in order
         * @param logProbs of the tokens, under the distribution of the draws
         */
        void sampled(int[] tokens, float[] logProbs);
    }

    /** Opens an engine once the policy is known. */
    @FunctionalInterface
    interface Factory {
        /**
         * Opens it; the caller closes it.
         *
         * @param weights that are followed; the caller's
         */
        TurnEngine open(NewestWeights weights, DecoderShape shape);

        /** Makes of weights what the engine reads, before it is to take them up; called by the thread that loaded them. */
        default void prepare(Weights weights) {
            // it reads them as they are
        }
    }

    /**
     * Begins to sample one answer.
     *
     * @param listener may hear of tokens that no answer follows, where sampling fails or is cancelled
     * @return the answer; fails with a sentence. Cancelling it gives it up
     */
    CompletableFuture<SampledTurn> sample(TurnOrder order, TokenListener listener);

    /** Why it cannot sample so that it could be trained on, a sentence that begins with the parameter; empty if it can. */
    default Optional<String> refusal(SamplingParameters sampling) {
        return Optional.empty();
    }

    /** Whether the seed of an order decides what is drawn. */
    default boolean isSeeded() {
        return true;
    }

    /** Most tokens of a prompt with its answer. */
    int capacityTokens();

    /** The version that what is begun now is sampled with; -1 where it cannot say yet. */
    long version();

    /** The previous version, which finishes answers under way while others begin; empty if there is none. */
    default OptionalLong olderVersion() {
        return OptionalLong.empty();
    }

    /** Oldest version of any token of an answer that is under way; empty if there is none. */
    OptionalLong oldestVersion();

    long sampledTokens();

    /** What it computes with, for the record. */
    EngineIdentity identity();

    /** Throws what it broke down with, if it did. */
    void requireAlive();

    /** What is under way fails. */
    @Override
    void close();
}
