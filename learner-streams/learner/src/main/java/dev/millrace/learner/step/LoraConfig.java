package dev.millrace.learner.step;

import dev.millrace.policy.decoder.LoraShape;
import java.util.List;
import java.util.Optional;

/**
 * Low-rank adapters: what is trained in place of the weights, and what a version then is.
 *
 * @param rank rank of the adapters; 0 trains all weights
 * @param alpha scale: adapters add {@code alpha / rank} · BA
 * @param targetModules linear layers with an adapter, by Hugging Face's names
 */
public record LoraConfig(int rank, double alpha, List<String> targetModules) {

    public LoraConfig {
        targetModules = List.copyOf(targetModules);
        if (rank < 0) {
            throw new IllegalArgumentException("rank must be at least 1, or 0 to train all weights: " + rank);
        }
        new LoraShape(Math.max(1, rank), alpha, targetModules); // refuses what is none, whether or not it is used
    }

    public static LoraConfig off() {
        return new LoraConfig(0, 16, LoraShape.MODULES);
    }

    /** What is trained; empty where that is the weights themselves. */
    public Optional<LoraShape> shape() {
        return rank == 0 ? Optional.empty() : Optional.of(new LoraShape(rank, alpha, targetModules));
    }
}
