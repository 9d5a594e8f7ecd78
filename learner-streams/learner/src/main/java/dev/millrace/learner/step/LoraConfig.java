package dev.millrace.learner.step;

import dev.millrace.policy.decoder.LoraShape;
import java.util.List;
import java.util.Optional;

/**
 * Low-rank adapters: what is trained in place of the weights, and what a version then is.
 *
 * @param rank          of the adapters; 0 trains the weights themselves
 * @param alpha         what is added to a weight is {@code alpha / rank} times the product of the adapter's two matrices
 * @param targetModules linear layers that get an adapter, in every block, by the names that Hugging Face gives them; by default all of them
 */
public record LoraConfig(int rank, double alpha, List<String> targetModules) {

    public LoraConfig {
        targetModules = List.copyOf(targetModules);
        if (rank < 0) {
            throw new IllegalArgumentException(
                    "rank must be at least 1, or 0 to train the weights themselves: " + rank);
        }
        new LoraShape(Math.max(1, rank), alpha, targetModules); // refuses what is none, whether or not it is used
    }

    /** The weights themselves are trained. */
    public static LoraConfig off() {
        return new LoraConfig(0, 16, LoraShape.MODULES);
    }

    /** What is trained; empty where that is the weights themselves. */
    public Optional<LoraShape> shape() {
        return rank == 0 ? Optional.empty() : Optional.of(new LoraShape(rank, alpha, targetModules));
    }
}
