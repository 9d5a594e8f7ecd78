package dev.millrace.learner.step;

import dev.millrace.corrections.algorithm.EntropyConfig;
import dev.millrace.corrections.control.LengthGuardConfig;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.Reinforce;

/**
 * How a batch becomes optimiser steps.
 *
 * @param optimizer           AdamW and its learning rate
 * @param objective           the loss
 * @param aggregation         how token losses become one number; the entropy bonus and a KL term are aggregated likewise
 * @param proximal            where the proximal log-probs come from
 * @param baseline            what a sequence's reward is held against
 * @param kl                  divergence from a reference policy
 * @param entropy             the entropy bonus
 * @param lengthGuard         what a surge of response lengths does to the step
 * @param minibatches         optimiser steps per pass over a batch; members are cut into so many stretches of equal length
 * @param epochs              passes over a batch
 * @param tokensPerMicrobatch padded tokens that go through the gradient graph at once: bounds memory
 * @param shards              parts of a minibatch that are differentiated at the same time, each on a thread of its own;
 *     part of what decides the last bits of the weights
 */
public record StepConfig(
        OptimizerConfig optimizer,
        Objective objective,
        LossAggregation aggregation,
        ProximalSource proximal,
        BaselineConfig baseline,
        KlConfig kl,
        EntropyConfig entropy,
        LengthGuardConfig lengthGuard,
        int minibatches,
        int epochs,
        int tokensPerMicrobatch,
        int shards) {

    public StepConfig {
        atLeastOne("minibatches", minibatches);
        atLeastOne("epochs", epochs);
        atLeastOne("tokens_per_microbatch", tokensPerMicrobatch);
        atLeastOne("shards", shards);
        if (objective instanceof Reinforce && (minibatches > 1 || epochs > 1)) {
            throw new IllegalArgumentException((epochs > 1 ? "epochs" : "minibatches")
                    + " above 1 needs an objective with a trust region, since later steps train on an older policy's tokens:"
                    + " objective.kind=reinforce, minibatches=" + minibatches + ", epochs=" + epochs
                    + "; choose objective.kind=decoupled_ppo");
        }
        if (objective.needsWholeGroups() && minibatches > 1) {
            throw new IllegalArgumentException(
                    "objective.kind=quatro solves for a trust region over all answers of a prompt, and minibatches"
                            + " cut groups apart: minibatches=" + minibatches
                            + "; set it to 1, or choose another objective");
        }
        if (objective.regressesOnOptimalAdvantage() != baseline instanceof BaselineConfig.SoftMaximum) {
            throw new IllegalArgumentException(
                    objective.regressesOnOptimalAdvantage()
                            ? "objective.kind=oapl regresses on the optimal advantage, so baseline.kind must be soft_maximum: "
                                    + baseline.getClass().getSimpleName()
                            : "baseline.kind=soft_maximum makes the advantages that objective.kind=oapl regresses on; with another objective"
                                    + " choose baseline.kind=group or opob: "
                                    + objective.getClass().getSimpleName());
        }
    }

    public static StepConfig defaults() {
        return new StepConfig(
                OptimizerConfig.defaults(),
                Objective.defaults(),
                new LossAggregation.AsPublished(),
                ProximalSource.RECOMPUTED,
                new BaselineConfig.Group(),
                new KlConfig.Off(),
                EntropyConfig.defaults(),
                new LengthGuardConfig.Off(),
                1,
                1,
                4096,
                2);
    }

    public StepConfig withOptimizer(OptimizerConfig other) {
        return new StepConfig(
                other,
                objective,
                aggregation,
                proximal,
                baseline,
                kl,
                entropy,
                lengthGuard,
                minibatches,
                epochs,
                tokensPerMicrobatch,
                shards);
    }

    public StepConfig withObjective(Objective other) {
        return new StepConfig(
                optimizer,
                other,
                aggregation,
                proximal,
                baseline,
                kl,
                entropy,
                lengthGuard,
                minibatches,
                epochs,
                tokensPerMicrobatch,
                shards);
    }

    public StepConfig withAggregation(LossAggregation other) {
        return new StepConfig(
                optimizer,
                objective,
                other,
                proximal,
                baseline,
                kl,
                entropy,
                lengthGuard,
                minibatches,
                epochs,
                tokensPerMicrobatch,
                shards);
    }

    public StepConfig withProximal(ProximalSource other) {
        return new StepConfig(
                optimizer,
                objective,
                aggregation,
                other,
                baseline,
                kl,
                entropy,
                lengthGuard,
                minibatches,
                epochs,
                tokensPerMicrobatch,
                shards);
    }

    public StepConfig withBaseline(BaselineConfig other) {
        return new StepConfig(
                optimizer,
                objective,
                aggregation,
                proximal,
                other,
                kl,
                entropy,
                lengthGuard,
                minibatches,
                epochs,
                tokensPerMicrobatch,
                shards);
    }

    public StepConfig withKl(KlConfig other) {
        return new StepConfig(
                optimizer,
                objective,
                aggregation,
                proximal,
                baseline,
                other,
                entropy,
                lengthGuard,
                minibatches,
                epochs,
                tokensPerMicrobatch,
                shards);
    }

    public StepConfig withEntropy(EntropyConfig other) {
        return new StepConfig(
                optimizer,
                objective,
                aggregation,
                proximal,
                baseline,
                kl,
                other,
                lengthGuard,
                minibatches,
                epochs,
                tokensPerMicrobatch,
                shards);
    }

    public StepConfig withLengthGuard(LengthGuardConfig other) {
        return new StepConfig(
                optimizer,
                objective,
                aggregation,
                proximal,
                baseline,
                kl,
                entropy,
                other,
                minibatches,
                epochs,
                tokensPerMicrobatch,
                shards);
    }

    /** The same with another number of optimiser steps on a batch. */
    public StepConfig withUpdates(int otherMinibatches, int otherEpochs) {
        return new StepConfig(
                optimizer,
                objective,
                aggregation,
                proximal,
                baseline,
                kl,
                entropy,
                lengthGuard,
                otherMinibatches,
                otherEpochs,
                tokensPerMicrobatch,
                shards);
    }

    /** The same cut differently into what is differentiated at once. */
    public StepConfig withCut(int otherTokensPerMicrobatch, int otherShards) {
        return new StepConfig(
                optimizer,
                objective,
                aggregation,
                proximal,
                baseline,
                kl,
                entropy,
                lengthGuard,
                minibatches,
                epochs,
                otherTokensPerMicrobatch,
                otherShards);
    }

    /** How token losses become one number beside this objective. */
    LossAggregation lossAggregation() {
        return aggregation.of(objective);
    }

    /** True if an update needs the current log-probs before its gradient, which costs a forward pass. */
    boolean needsCurrentLogProbs() {
        return !objective.linear() || kl instanceof KlConfig.InLoss;
    }

    private static void atLeastOne(String key, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }
}
