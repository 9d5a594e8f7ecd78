package dev.millrace.generator.sampling;

import dev.millrace.policy.session.DecodeSteps;
import dev.millrace.policy.session.Sampling;
import dev.millrace.policy.session.TopTokens;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What a rollout's draws were made from, token after token, as far as its sampling asks for it: the kept tokens, the likeliest
 * ones. Owned by the sampling thread.
 */
final class DrawNotes {
    private static final int INITIAL_DRAWS = 16;

    private final boolean recordsKept;
    private final int k;
    private int draws;
    private int[] keptCounts;
    private int[] keptIds = {};
    private int keptLength;
    private int[] topIds;
    private float[] topLogProbs;
    private float[] remainders;

    private DrawNotes(Sampling sampling) {
        this.recordsKept = sampling.recordsKept();
        this.k = sampling.topLogProbs();
        this.keptCounts = new int[recordsKept ? INITIAL_DRAWS : 0];
        this.topIds = new int[k * INITIAL_DRAWS];
        this.topLogProbs = new float[topIds.length];
        this.remainders = new float[k == 0 ? 0 : INITIAL_DRAWS];
    }

    /** Null where nothing is to be recorded. */
    static @Nullable DrawNotes of(Sampling sampling) {
        return sampling.recordsKept() || sampling.topLogProbs() > 0 ? new DrawNotes(sampling) : null;
    }

    /** Takes a draw that belongs to the rollout; they come in order. */
    void take(DecodeSteps done, int step, int slot) {
        if (recordsKept) {
            takeKept(done.kept(step, slot));
        }
        if (k > 0) {
            takeTop(done.top(step, slot, k));
        }
        draws++;
    }

    private void takeKept(int[] kept) {
        if (draws == keptCounts.length) {
            keptCounts = Arrays.copyOf(keptCounts, 2 * draws);
        }
        if (keptLength + kept.length > keptIds.length) {
            keptIds = Arrays.copyOf(keptIds, Math.max(2 * keptIds.length, keptLength + kept.length));
        }
        keptCounts[draws] = kept.length;
        System.arraycopy(kept, 0, keptIds, keptLength, kept.length);
        keptLength += kept.length;
    }

    private void takeTop(TopTokens top) {
        if (draws == remainders.length) {
            topIds = Arrays.copyOf(topIds, 2 * topIds.length);
            topLogProbs = Arrays.copyOf(topLogProbs, topIds.length);
            remainders = Arrays.copyOf(remainders, 2 * draws);
        }
        System.arraycopy(top.ids(), 0, topIds, draws * k, k);
        System.arraycopy(top.logProbs(), 0, topLogProbs, draws * k, k);
        remainders[draws] = top.remainder();
    }

    /** One row per draw. */
    SamplingTrace trace() {
        return new SamplingTrace(
                k == 0
                        ? null
                        : new TopLogProbs(
                                k,
                                PackedInts.of(Arrays.copyOf(topIds, draws * k)),
                                PackedFloats.of(Arrays.copyOf(topLogProbs, draws * k)),
                                PackedFloats.of(Arrays.copyOf(remainders, draws))),
                recordsKept
                        ? new KeptSupport(
                                PackedInts.of(Arrays.copyOf(keptCounts, draws)),
                                PackedInts.of(Arrays.copyOf(keptIds, keptLength)))
                        : null,
                null,
                null);
    }
}
