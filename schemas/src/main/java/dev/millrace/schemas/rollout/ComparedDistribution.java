package dev.millrace.schemas.rollout;

import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The distribution in which a rollout's policies are compared: the softmax at its temperature, over the tokens that
 * top-k, top-p and min-p kept if its sampling has {@code keep_sampling_mask}, otherwise over the whole vocabulary.
 *
 * <p>For rollouts that passed the {@link RolloutValidator}.
 */
public final class ComparedDistribution {
    private ComparedDistribution() {}

    public static boolean isTruncated(SamplingParameters sampling) {
        return sampling.getTopK() > 0 || sampling.getTopP() < 1 || sampling.getMinP() > 0;
    }

    public static LogProbDistribution sampled(SamplingParameters sampling) {
        if (isTruncated(sampling)) {
            return LogProbDistribution.TRUNCATED;
        }
        return sampling.getTemperature() == 1 ? LogProbDistribution.RAW : LogProbDistribution.TEMPERED;
    }

    public static ByteBuffer behaviorLogProbs(Rollout rollout) {
        ByteBuffer tempered = rollout.getTemperedLogProbs();
        return tempered == null || rollout.getSampling().getKeepSamplingMask()
                ? rollout.getBehaviorLogProbs()
                : tempered;
    }

    /** Experts of its tokens in every pass; null if each pass chooses its own. */
    public static @Nullable RecordedRouting routing(Rollout rollout) {
        return rollout.getSampling().getRecordRouting() && rollout.getSamplingTrace() != null
                ? rollout.getSamplingTrace().getRouting()
                : null;
    }

    /** The kept tokens; null for the whole vocabulary. */
    public static @Nullable KeptSupport keptTokens(Rollout rollout) {
        return rollout.getSampling().getKeepSamplingMask() && rollout.getSamplingTrace() != null
                ? rollout.getSamplingTrace().getKeptTokens()
                : null;
    }

    /** Number of kept tokens per response token; 0 where the mask is 0. */
    public static int[] keptCounts(KeptSupport kept, ByteBuffer mask) {
        int[] counts = new int[PackedMask.length(mask)];
        int row = 0;
        for (int t = 0; t < counts.length; t++) {
            if (PackedMask.get(mask, t) == 1) {
                counts[t] = PackedInts.get(kept.getCounts(), row++);
            }
        }
        return counts;
    }
}
