package dev.millrace.learner.step;

import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.trm.TopKDistributions;
import dev.millrace.policy.session.EntryScores;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The behavior policy's likeliest tokens at every token of a batch, with the log-probs of the step's starting weights where a
 * member was scored, else as recorded with its proximal log-probs.
 */
final class CurrentDistributions {
    private final StepMembers members;
    private final int k;
    private final float[] behavior;
    private final float[] proximal;
    private final float[] behaviorRest;

    private CurrentDistributions(StepMembers members, int k) {
        this.members = members;
        this.k = k;
        this.behavior = new float[Math.multiplyExact(members.sequences().scoredCount(), k)];
        this.proximal = new float[behavior.length];
        this.behaviorRest = new float[members.sequences().scoredCount()];
        Arrays.fill(behavior, Float.NEGATIVE_INFINITY);
        Arrays.fill(proximal, Float.NEGATIVE_INFINITY);
    }

    /**
     * As recorded.
     *
     * @param scored members that are to be scored: they need no recorded log-probs of the proximal policy
     * @return null if a trainable member has no likeliest tokens, or is not scored and was not
     */
    static @Nullable CurrentDistributions recorded(StepMembers members, int[] scored) {
        boolean[] isScored = new boolean[members.count()];
        for (int s : scored) {
            isScored[s] = true;
        }
        int k = 1;
        int[] trainable = members.trainable().toArray();
        for (int s : trainable) {
            Trajectory trajectory = members.trajectory(s);
            if (trajectory.getTopLogProbs() == null || trajectory.getProximalTopLogProbs() == null && !isScored[s]) {
                return null;
            }
            k = Math.max(k, trajectory.getTopLogProbs().getK());
        }
        CurrentDistributions recorded = new CurrentDistributions(members, k);
        for (int s : trainable) {
            Trajectory trajectory = members.trajectory(s);
            recorded.unpack(s, trajectory.getTopLogProbs(), recorded.behavior);
            ByteBuffer rest = trajectory.getTopLogProbs().getRemainderLogProbs();
            int offset = members.sequences().offset(s);
            recorded.forRows(s, (t, row) -> recorded.behaviorRest[offset + t] = PackedFloats.get(rest, row));
            if (trajectory.getProximalTopLogProbs() != null) {
                recorded.unpack(s, trajectory.getProximalTopLogProbs(), recorded.proximal);
            }
        }
        return recorded;
    }

    private void unpack(int member, TopLogProbs top, float[] into) {
        int offset = members.sequences().offset(member);
        forRows(member, (t, row) -> {
            for (int i = 0; i < top.getK(); i++) {
                into[(offset + t) * k + i] = PackedFloats.get(top.getLogProbs(), row * top.getK() + i);
            }
        });
    }

    /** Goes through the tokens of a member that are trained on, each with its row in recorded distributions. */
    private void forRows(int member, Rows rows) {
        int row = 0;
        for (int t = 0; t < length(member); t++) {
            if (PackedMask.get(members.trajectory(member).getMask(), t) == 1) {
                rows.at(t, row++);
            }
        }
    }

    private interface Rows {
        void at(int token, int row);
    }

    private int length(int member) {
        SequenceBatch sequences = members.sequences();
        return sequences.offset(member + 1) - sequences.offset(member);
    }

    int k() {
        return k;
    }

    /** The ids to score for each sequence of a shard; where a rollout names fewer, something that is not read. */
    int[][] entries(Shard shard) {
        int[][] entries = new int[shard.count()][];
        for (int i = 0; i < entries.length; i++) {
            int member = shard.member(i);
            TopLogProbs top = members.trajectory(member).getTopLogProbs();
            int[] ids = new int[length(member) * k];
            entries[i] = ids;
            if (top != null) {
                forRows(member, (t, row) -> {
                    for (int j = 0; j < top.getK(); j++) {
                        ids[t * k + j] = PackedInts.get(top.getTokenIds(), row * top.getK() + j);
                    }
                });
            }
        }
        return entries;
    }

    /** Takes what a forward pass over a shard found; shards are of different members, so several threads may call it. */
    void put(Shard shard, EntryScores found) {
        for (int i = 0; i < shard.count(); i++) {
            int member = shard.member(i);
            TopLogProbs top = members.trajectory(member).getTopLogProbs();
            int from = shard.sequences().offset(i);
            int to = members.sequences().offset(member);
            if (top != null) {
                forRows(
                        member,
                        (t, row) ->
                                System.arraycopy(found.logProbs(), (from + t) * k, proximal, (to + t) * k, top.getK()));
            }
        }
    }

    void addTo(StageFacts.Builder facts) {
        facts.distributions(new TopKDistributions(k, behavior, proximal, behaviorRest));
    }
}
