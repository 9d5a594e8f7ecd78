package dev.millrace.learner.step;

import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import java.nio.ByteBuffer;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Entropies, sums of squared probabilities, values and likeliest tokens at every token, of the step's starting weights where a member was scored, else as
 * recorded with its proximal log-probs. Packed as the batch is.
 */
final class CurrentMoments {
    /** What is known besides the likeliest tokens: of which stage input, where it is recorded, and what scores have of it. */
    private enum Vector {
        ENTROPIES(StageInput.ENTROPIES, Trajectory::getProximalEntropies, TokenScores::entropies),
        SUM_SQUARED_PROBS(
                StageInput.SQUARED_PROBABILITIES, Trajectory::getProximalSumSquaredProbs, TokenScores::sumSquaredProbs),
        VALUES(StageInput.VALUES, Trajectory::getProximalValues, TokenScores::values);

        private final StageInput input;
        private final Function<Trajectory, ByteBuffer> recorded;
        private final Function<TokenScores, float[]> scored;

        Vector(StageInput input, Function<Trajectory, ByteBuffer> recorded, Function<TokenScores, float[]> scored) {
            this.input = input;
            this.recorded = recorded;
            this.scored = scored;
        }
    }

    private final Map<Vector, float[]> vectors;
    private final @Nullable CurrentDistributions distributions;

    private CurrentMoments(Map<Vector, float[]> vectors, @Nullable CurrentDistributions distributions) {
        this.vectors = vectors;
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
        Map<Vector, float[]> vectors = new EnumMap<>(Vector.class);
        for (Vector vector : Vector.values()) {
            float[] known = inputs.contains(vector.input) ? recorded(members, scored, vector.recorded) : null;
            if (known != null) {
                vectors.put(vector, known);
            }
        }
        return new CurrentMoments(
                vectors,
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
    void put(Shard scored, TokenScores scores) {
        vectors.forEach((vector, known) -> scored.put(vector.scored.apply(scores), known));
    }

    void addTo(StageFacts.Builder facts) {
        vectors.forEach((vector, known) -> facts.vector(vector.input, known));
        if (distributions != null) {
            distributions.addTo(facts);
        }
    }
}
