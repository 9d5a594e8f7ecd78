package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * What one optimiser step trains on: the members' response tokens packed one after the other, with every vector beside.
 *
 * <p>Packed position p is the same token in {@link #sequences()}, whose scored tokens are the responses, and in
 * {@link #layout()}. The arrays are shared with whoever asks and must not be written.
 */
final class Minibatch {
    private final List<Member> members;
    private final SequenceBatch sequences;
    private final TokenBatch layout;
    private final float[] temperatures;
    private final float[] advantages;
    private final float[] weights;
    private final float[] behavior;
    private final float[] old;
    private final float[] proximal;

    /** @param members at least one, each with at least one trained token */
    Minibatch(List<Member> members) {
        this.members = List.copyOf(members);
        this.sequences = sequences(members);
        this.layout = layout(members, sequences);
        this.temperatures = new float[members.size()];
        this.advantages = new float[layout.tokenCount()];
        for (int s = 0; s < members.size(); s++) {
            temperatures[s] = (float) members.get(s).trajectory().getTemperature();
            for (int t = layout.start(s); t < layout.end(s); t++) {
                advantages[t] = layout.isTrained(t) ? (float) members.get(s).entry().getAdvantage() : 0f;
            }
        }
        this.weights = packed(Trajectory::getImportanceWeights);
        this.behavior = packed(Trajectory::getBehaviorLogProbs);
        this.old = packed(Trajectory::getOldLogProbs);
        this.proximal = packed(Trajectory::getProximalLogProbs);
    }

    private static SequenceBatch sequences(List<Member> members) {
        int[][] tokens = new int[members.size()][];
        int[] firstScored = new int[members.size()];
        for (int s = 0; s < tokens.length; s++) {
            Trajectory trajectory = members.get(s).trajectory();
            firstScored[s] = PackedInts.length(trajectory.getPromptTokens());
            tokens[s] = new int[firstScored[s] + PackedInts.length(trajectory.getResponseTokens())];
            PackedInts.copyTo(trajectory.getPromptTokens(), tokens[s], 0);
            PackedInts.copyTo(trajectory.getResponseTokens(), tokens[s], firstScored[s]);
        }
        return new SequenceBatch(tokens, firstScored);
    }

    private static TokenBatch layout(List<Member> members, SequenceBatch sequences) {
        int[] offsets = new int[members.size() + 1];
        byte[] mask = new byte[sequences.scoredCount()];
        for (int s = 0; s < members.size(); s++) {
            PackedMask.copyTo(members.get(s).mask(), mask, sequences.offset(s));
            offsets[s + 1] = sequences.offset(s + 1);
        }
        return new TokenBatch(offsets, mask);
    }

    private float[] packed(Function<Trajectory, ByteBuffer> vector) {
        float[] values = new float[layout.tokenCount()];
        for (int s = 0; s < members.size(); s++) {
            PackedFloats.copyTo(vector.apply(members.get(s).trajectory()), values, layout.start(s));
        }
        return values;
    }

    /** The objective's input for log-probs of the policy being differentiated. */
    ObjectiveInput input(ObjectiveConfig.Kind kind, float[] current) {
        ObjectiveInput input = ObjectiveInput.of(layout, current, advantages).withWeights(weights);
        return switch (kind) {
            case REINFORCE, DECOUPLED_PPO -> input.withProximal(proximal);
            case PPO_CLIP -> input.withProximal(old);
        };
    }

    /** One part of {@code shards}: the members {@code i} with {@code i mod shards == shard}, which may be none. */
    Shard shard(int shard, int shards) {
        return new Shard(sequences, temperatures,
            IntStream.range(0, members.size()).filter(i -> i % shards == shard).toArray());
    }

    List<Member> members() {
        return members;
    }

    SequenceBatch sequences() {
        return sequences;
    }

    TokenBatch layout() {
        return layout;
    }

    float[] behavior() {
        return behavior;
    }

    float[] proximal() {
        return proximal;
    }
}
