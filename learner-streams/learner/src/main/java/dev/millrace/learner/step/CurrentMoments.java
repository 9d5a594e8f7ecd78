package dev.millrace.learner.step;

import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Entropies, sums of squared probabilities, values and likeliest tokens at every token, of the step's starting weights where a member was scored, else as
 * recorded with its proximal log-probs. Packed as the batch is.
 */
final class CurrentMoments {
    private final float @Nullable [] entropies;
    private final float @Nullable [] sumSquaredProbs;
    private final float @Nullable [] values;
    private final @Nullable CurrentDistributions distributions;

    private CurrentMoments(
            float @Nullable [] entropies,
            float @Nullable [] sumSquaredProbs,
            float @Nullable [] values,
            @Nullable CurrentDistributions distributions) {
        this.entropies = entropies;
        this.sumSquaredProbs = sumSquaredProbs;
        this.values = values;
        this.distributions = distributions;
    }

    /** Whether any of it is wanted. */
    static boolean areRead(Set<StageInput> inputs) {
        return inputs.contains(StageInput.ENTROPIES)
                || inputs.contains(StageInput.SQUARED_PROBABILITIES)
                || inputs.contains(StageInput.VALUES)
                || inputs.contains(StageInput.DISTRIBUTIONS);
    }

    /**
     * Of a batch, before its members were scored.
     *
     * @param inputs that are wanted, values only of the policy's own critic
     */
    static CurrentMoments recorded(StepMembers members, Set<StageInput> inputs, int[] scored) {
        return new CurrentMoments(
                inputs.contains(StageInput.ENTROPIES)
                        ? recorded(members, scored, Trajectory::getProximalEntropies)
                        : null,
                inputs.contains(StageInput.SQUARED_PROBABILITIES)
                        ? recorded(members, scored, Trajectory::getProximalSumSquaredProbs)
                        : null,
                inputs.contains(StageInput.VALUES) ? recorded(members, scored, Trajectory::getProximalValues) : null,
                inputs.contains(StageInput.DISTRIBUTIONS) ? CurrentDistributions.recorded(members, scored) : null);
    }

    /** Whose likeliest tokens are to be scored too; null if nobody's. */
    @Nullable
    CurrentDistributions distributions() {
        return distributions;
    }

    /** Null if a member that is not scored has none; 0 where there is nothing to train on. */
    private static float @Nullable [] recorded(
            StepMembers members, int[] scored, Function<Trajectory, ByteBuffer> vector) {
        float[] known = new float[members.sequences().scoredCount()];
        boolean[] isScored = new boolean[members.count()];
        for (int s : scored) {
            isScored[s] = true;
        }
        for (int s : members.trainable().toArray()) {
            ByteBuffer own = vector.apply(members.trajectory(s));
            if (own != null) {
                PackedFloats.copyTo(own, known, members.sequences().offset(s));
            } else if (!isScored[s]) {
                return null;
            }
        }
        return known;
    }

    /** Takes what a forward pass found. */
    void put(Shard scored, GradientShards.Scores scores) {
        if (entropies != null) {
            scored.put(scores.entropies(), entropies);
        }
        if (sumSquaredProbs != null) {
            scored.put(scores.sumSquaredProbs(), sumSquaredProbs);
        }
        if (values != null) {
            scored.put(scores.values(), values);
        }
    }

    void addTo(StageFacts.Builder facts) {
        if (entropies != null) {
            facts.vector(StageInput.ENTROPIES, entropies);
        }
        if (sumSquaredProbs != null) {
            facts.vector(StageInput.SQUARED_PROBABILITIES, sumSquaredProbs);
        }
        if (values != null) {
            facts.vector(StageInput.VALUES, values);
        }
        if (distributions != null) {
            distributions.addTo(facts);
        }
    }
}
