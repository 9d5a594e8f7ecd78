package dev.millrace.learner.step;

import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.SequenceBatch;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Some sequences of a batch as a batch of their own, and the way between its packed positions and the other's. Parts of a
 * shard are shards of it.
 */
final class Shard {
    private final @Nullable Shard parent;
    private final SequenceBatch whole;
    private final int[] members;
    private final SequenceBatch sequences;
    private final float[] temperatures;

    /** @param members indices into {@code whole}, ascending */
    Shard(SequenceBatch whole, float[] temperatures, int[] members) {
        this(null, whole, temperatures, members);
    }

    private Shard(@Nullable Shard parent, SequenceBatch whole, float[] temperatures, int[] members) {
        this.parent = parent;
        this.whole = whole;
        this.members = members;
        this.temperatures = new float[members.length];
        int[][] tokens = new int[members.length][];
        int[] firstScored = new int[members.length];
        @Nullable SampledSupport[] kept = new SampledSupport[members.length];
        @Nullable RoutedExperts[] routing = new RoutedExperts[members.length];
        for (int i = 0; i < members.length; i++) {
            int s = members[i];
            this.temperatures[i] = temperatures[s];
            firstScored[i] = whole.firstScored(s);
            kept[i] = whole.kept(s);
            routing[i] = whole.routing(s);
            tokens[i] = new int[whole.length(s)];
            for (int t = 0; t < tokens[i].length; t++) {
                tokens[i][t] = whole.token(s, t);
            }
        }
        this.sequences = new SequenceBatch(tokens, firstScored, kept).routed(routing);
    }

    /** One part of {@code parts}: the sequences {@code i} with {@code i mod parts == part}, which may be none. */
    Shard part(int part, int parts) {
        return new Shard(
                this,
                sequences,
                temperatures,
                IntStream.range(0, members.length)
                        .filter(i -> i % parts == part)
                        .toArray());
    }

    SequenceBatch sequences() {
        return sequences;
    }

    float[] temperatures() {
        return temperatures;
    }

    int count() {
        return members.length;
    }

    /** The index of the i-th sequence in the batch that this is a shard, or a part of a shard, of. */
    int member(int i) {
        return parent == null ? members[i] : parent.member(members[i]);
    }

    /** This shard's values out of the other's. */
    float[] pick(float[] packed) {
        float[] picked = new float[sequences.scoredCount()];
        for (int i = 0; i < members.length; i++) {
            System.arraycopy(packed, whole.offset(members[i]), picked, sequences.offset(i), length(i));
        }
        return picked;
    }

    /** Puts this shard's values where they belong in the other's. */
    void put(float[] values, float[] packed) {
        for (int i = 0; i < members.length; i++) {
            System.arraycopy(values, sequences.offset(i), packed, whole.offset(members[i]), length(i));
        }
    }

    private int length(int i) {
        return sequences.offset(i + 1) - sequences.offset(i);
    }
}
