package dev.millrace.learner.step;

import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.kl.ReferenceConfig;
import dev.millrace.learner.batch.InconsistentBatchException;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.packed.PackedFloats;
import java.nio.ByteBuffer;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** The reference policy's log-probs of a batch, as configured: from the trajectories, or by a forward pass under kept weights. */
final class ReferenceLogProbs {
    private final @Nullable ReferenceConfig config;
    private final GradientShards shards;
    private final Gradients lent;
    private @Nullable Weights kept;
    /** In their place where they are bfloat16, which takes half. */
    private @Nullable FrozenWeights frozen;

    /** @param lent the gradient's memory, which is free until a step differentiates: whole weights are made in it */
    ReferenceLogProbs(KlConfig kl, GradientShards shards, Gradients lent) {
        this.config = kl.against().orElse(null);
        this.shards = shards;
        this.lent = lent;
    }

    /** The version whose weights must be kept; empty if none. */
    OptionalLong version() {
        return config instanceof ReferenceConfig.Version fixed
                ? OptionalLong.of(fixed.version())
                : OptionalLong.empty();
    }

    /** The reference's weights, which must not change from now on. */
    void keep(Weights weights) {
        boolean freezes = weights.dtype() == Dtype.BF16
                && weights.adapter().isEmpty()
                && lent.specs().equals(weights.tensors().specs());
        frozen = freezes ? new FrozenWeights(weights, "") : null; // nobody asks for their hash
        kept = freezes ? null : weights;
    }

    /**
     * Packed log-probs; null if nobody needs them, or the learner's are the reference.
     *
     * @throws InconsistentBatchException naming the first trainable member without recorded ones
     */
    float @Nullable [] of(StepMembers members, StepMetricsTally means) {
        if (config == null || config instanceof ReferenceConfig.Learner || members.count() == 0) {
            return null;
        }
        float[] values = new float[members.sequences().scoredCount()];
        int[] trainable = members.trainable().toArray();
        if (config instanceof ReferenceConfig.Version fixed) {
            Weights weights = frozen == null ? kept : frozen.thawedInto(lent.tensors());
            if (weights == null) {
                throw new IllegalStateException("kl.reference.version is " + fixed.version()
                        + ", but the optimiser was not given its weights (BatchOptimizer.useReference)");
            }
            shards.score(weights, members, trainable, values, null, means);
            return values;
        }
        for (int s : trainable) {
            ByteBuffer recorded = members.trajectory(s).getReferenceLogProbs();
            if (recorded == null) {
                throw new InconsistentBatchException("batch "
                        + members.batch().batch().getBatchId() + ", rollout " + members.rolloutId(s)
                        + ": kl is configured with reference.kind=recorded, but this trajectory has no reference log-probs;"
                        + " have the topology join reference scores, or let the learner compute them itself"
                        + " (kl.reference.kind=version, kl.reference.version=0 for the initial weights)");
            }
            PackedFloats.copyTo(recorded, values, members.sequences().offset(s));
        }
        return values;
    }
}
