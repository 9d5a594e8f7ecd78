package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.vcpo.OffPolicyOptimalBaseline;
import dev.millrace.corrections.vcpo.SequenceLogWeights;
import dev.millrace.learner.step.BaselineConfig.Opob;
import dev.millrace.policy.weights.Weights;
import dev.millrace.stages.MemberLogProbs;
import dev.millrace.stages.RolloutCorrectionOptions;
import java.util.Arrays;

/**
 * OPOB's advantages with the norms of the real gradients: of each sequence's log-prob, over the tokens it is trained on, by
 * all parameters, at the step's starting weights.
 */
final class OptimalBaseline {
    private final RolloutCorrectionOptions correction;
    private final GradientShards shards;

    OptimalBaseline(RolloutCorrectionOptions correction, GradientShards shards) {
        this.correction = correction;
        this.shards = shards;
    }

    /** One advantage per member; 0 for one without a trained token. */
    double[] advantages(
            Opob config,
            StepMembers members,
            StepDecision decision,
            double[] rewards,
            Weights weights,
            StepMetricsTally means) {
        TokenBatch left = decision.left();
        int[] trained = decision.trained();
        double[] norms = new double[members.count()];
        shards.gradientNorms(weights, members, trained, left, norms, means);
        double[] logWeights = logWeights(config, members, decision, trained);
        double[] advantages = new double[members.count()];
        double[] baselines = new OffPolicyOptimalBaseline(
                        config.scope(), config.average(), config.lengthNormalized(), config.divideByStd())
                .compute(left, rewards, norms, logWeights, advantages);
        means.once(
                StepMetric.OPOB_NORM_MEAN,
                Arrays.stream(trained).mapToDouble(s -> norms[s]).average().orElse(0));
        means.once(
                StepMetric.OPOB_NORM_MAX,
                Arrays.stream(trained).mapToDouble(s -> norms[s]).max().orElse(0));
        means.once(
                StepMetric.OPOB_BASELINE_MEAN,
                Arrays.stream(baselines).average().orElse(0));
        means.once(
                StepMetric.OPOB_MOVED_MEAN,
                Arrays.stream(trained)
                        .mapToDouble(s -> Math.abs(advantages[s] - decision.advantages()[s]))
                        .average()
                        .orElse(0));
        return advantages;
    }

    private double[] logWeights(Opob config, StepMembers members, StepDecision decision, int[] trained) {
        double[] logWeights = new double[members.count()];
        if (config.weights() != Opob.Weights.NONE) {
            LogRatio ratio = new MemberLogProbs(members.behavior(), decision.old(), decision.proximal())
                    .ratio(correction.compare());
            double[] raw = SequenceLogWeights.ofTrainedSequences(decision.left(), ratio);
            double cap =
                    config.weights() == Opob.Weights.TRUNCATED ? Math.log(correction.weightCap()) : Double.MAX_VALUE;
            for (int i = 0; i < trained.length; i++) {
                logWeights[trained[i]] = Math.min(raw[i], cap);
            }
        }
        return logWeights;
    }
}
