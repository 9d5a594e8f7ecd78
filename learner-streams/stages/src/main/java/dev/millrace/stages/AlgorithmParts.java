package dev.millrace.stages;

import dev.millrace.api.catalogue.BuiltIn;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.advantage.BatchMean;
import dev.millrace.corrections.advantage.Distillation;
import dev.millrace.corrections.advantage.EmaBaseline;
import dev.millrace.corrections.advantage.FailureDistillation;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.Gdpo;
import dev.millrace.corrections.advantage.Gpg;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.advantage.GrpoPassk;
import dev.millrace.corrections.advantage.MaxRl;
import dev.millrace.corrections.advantage.Opo;
import dev.millrace.corrections.advantage.OptimalTokenBaseline;
import dev.millrace.corrections.advantage.PassAtKAdvantage;
import dev.millrace.corrections.advantage.ReinforcePlusPlus;
import dev.millrace.corrections.advantage.ReinforcePlusPlusBaseline;
import dev.millrace.corrections.advantage.Remax;
import dev.millrace.corrections.advantage.RlZvp;
import dev.millrace.corrections.advantage.Rloo;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.advantage.TirOptimalTokenBaseline;
import dev.millrace.corrections.advantage.TokenPreservingGrpo;
import dev.millrace.corrections.advantage.ValueTracker;
import dev.millrace.corrections.filter.BatchDivergenceFilter;
import dev.millrace.corrections.filter.BinaryKlMask;
import dev.millrace.corrections.filter.DivergenceFilterMask;
import dev.millrace.corrections.filter.DoubleSidedMask;
import dev.millrace.corrections.filter.ForcedTokenMask;
import dev.millrace.corrections.filter.ProbabilityDifferenceMask;
import dev.millrace.corrections.filter.RandomRejection;
import dev.millrace.corrections.filter.ZeroAdvantageMask;
import dev.millrace.corrections.length.AnchorLengthPenalty;
import dev.millrace.corrections.length.GroupAdaptiveLengthPenalty;
import dev.millrace.corrections.length.KimiLengthPenalty;
import dev.millrace.corrections.length.LaserLengthReward;
import dev.millrace.corrections.length.LengthTrap;
import dev.millrace.corrections.length.PassAtKFigure;
import dev.millrace.corrections.length.UniformLengthPenalty;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.Aspo;
import dev.millrace.corrections.objective.BypassPpoClip;
import dev.millrace.corrections.objective.BypassReinforce;
import dev.millrace.corrections.objective.Cispo;
import dev.millrace.corrections.objective.ClipCov;
import dev.millrace.corrections.objective.Ctpo;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.Dispo;
import dev.millrace.corrections.objective.DppoKl;
import dev.millrace.corrections.objective.DppoTv;
import dev.millrace.corrections.objective.Dro;
import dev.millrace.corrections.objective.Gmpo;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.objective.GspoToken;
import dev.millrace.corrections.objective.Ipo;
import dev.millrace.corrections.objective.KlCov;
import dev.millrace.corrections.objective.Luspo;
import dev.millrace.corrections.objective.M2poSurrogate;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.P3o;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Quatro;
import dev.millrace.corrections.objective.R2vpo;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.objective.Sapo;
import dev.millrace.corrections.objective.SequenceSapo;
import dev.millrace.corrections.objective.Topr;
import dev.millrace.corrections.objective.Vespo;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.staleness.SequenceMask;
import dev.millrace.corrections.staleness.StaleSequenceMask;
import dev.millrace.corrections.trm.ExactTrustRegionMask;
import dev.millrace.corrections.trm.SampledTrustRegionMask;
import dev.millrace.corrections.vcpo.Opob;
import dev.millrace.corrections.weights.ClampedWeights;
import dev.millrace.corrections.weights.CumulativeWeights;
import dev.millrace.corrections.weights.GeometricSequenceWeights;
import dev.millrace.corrections.weights.InterpolatedWeights;
import dev.millrace.corrections.weights.MinimumPrefixWeights;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Sequence;
import dev.millrace.corrections.weights.ShapedWeights;
import dev.millrace.corrections.weights.SingleSideCapWeights;
import dev.millrace.corrections.weights.Token;
import dev.millrace.corrections.weights.TurnProductWeights;
import dev.millrace.corrections.weights.TurnWeights;
import java.util.List;
import java.util.stream.Stream;

/**
 * Extension points of the algorithm with their built-in kinds. To add a stage, add its kind here; a plug-in adds kinds without a
 * change of this class.
 */
public final class AlgorithmParts implements BuiltIn {

    @Override
    public String name() {
        return "algorithm";
    }

    @Override
    public List<ExtensionPoint> extensionPoints() {
        return List.of(
                new ExtensionPoint(
                        "reward-stage", RewardStage.class, "algorithm.rewards", "shapes the rewards of a batch"),
                new ExtensionPoint(
                        "advantage",
                        AdvantageEstimator.class,
                        "algorithm.advantage",
                        "turns the rewards of a batch into advantages"),
                new ExtensionPoint("weights", WeightStage.class, "algorithm.weights", "makes importance weights"),
                new ExtensionPoint("mask", MaskStage.class, "algorithm.masks", "takes tokens out of the update"),
                new ExtensionPoint(
                        "objective",
                        Objective.class,
                        "algorithm.objective",
                        "gives the loss and its derivative by each log-prob"));
    }

    @Override
    public List<Kind> kinds() {
        return Stream.of(advantages(), weights(), masks(), rewards(), objectives())
                .flatMap(List::stream)
                .toList();
    }

    private static List<Kind> advantages() {
        return List.of(
                advantage("grpo", Grpo.defaults(), "the reward against the mean of its group")
                        .also("grpo_vectorized"),
                advantage("rloo", Rloo.defaults(), "the reward against the mean of its siblings"),
                advantage(
                        "reinforce_plus_plus",
                        ReinforcePlusPlus.defaults(),
                        "the reward to go of each token, whitened over the batch"),
                advantage(
                        "reinforce_plus_plus_baseline",
                        new ReinforcePlusPlusBaseline(),
                        "the reward against the mean of its group, whitened over the batch"),
                advantage(
                        "remax",
                        Remax.defaults(),
                        "the reward to go of each token against the reward of the greedy answer"),
                advantage("opo", new Opo(), "the reward against the length-weighted mean of its group"),
                advantage("gpg", Gpg.defaults(), "the reward against the mean of its group, scaled up for lost signal"),
                advantage(
                        "gdpo",
                        Gdpo.defaults(),
                        "each component of the reward against its group by itself, then whitened over the batch"),
                advantage("grpo_passk", GrpoPassk.defaults(), "the lead of the best of a group over its second"),
                advantage(
                        "pass_at_k",
                        PassAtKAdvantage.defaults(),
                        "the best of k draws as the reward of each that was drawn"),
                advantage("max_rl", new MaxRl(), "the reward against the mean of its group, in units of that mean"),
                advantage(
                        "rl_zvp",
                        RlZvp.defaults(),
                        "the reward against the mean of its group, and the entropy of tokens where rewards are equal"),
                advantage(
                        "distillation",
                        Distillation.defaults(),
                        "the log-prob of a teacher against the policy's own, and the reward at a weight"),
                advantage(
                        "failure_distillation",
                        FailureDistillation.defaults(),
                        "a teacher's log-probs for wrong answers to hard prompts, the reward for the rest"),
                advantage("batch_mean", new BatchMean(), "the reward against the mean of the batch"),
                advantage(
                        "value_tracker",
                        ValueTracker.defaults(),
                        "the reward against the success rate of its prompt over earlier batches, whitened over the batch"),
                advantage(
                        "ema_baseline",
                        EmaBaseline.defaults(),
                        "the reward against the moving average of earlier rewards of its task or prompt"),
                advantage("gae", Gae.defaults(), "generalised advantages of a critic's values"),
                advantage(
                        "optimal_token_baseline",
                        OptimalTokenBaseline.defaults(),
                        "the reward to go against the baseline of least variance at each position"),
                advantage(
                        "tir_optimal_token_baseline",
                        TirOptimalTokenBaseline.defaults(),
                        "the reward to go against the baseline of least variance at each count of trained tokens"),
                advantage(
                        "token_preserving_grpo",
                        TokenPreservingGrpo.defaults(),
                        "outcomes and rewards of turns or tokens, each against its group, added per token"),
                advantage(
                        "opob",
                        Opob.defaults(),
                        "the reward against the baseline of least variance off policy, by the norms of gradients"),
                advantage(
                        "soft_maximum",
                        SoftMaximum.defaults(),
                        "the reward against the value of the optimum that stays near the sampler"));
    }

    private static Kind advantage(String name, Record defaults, String meaning) {
        return Kind.of(AdvantageEstimator.class, name, defaults, meaning);
    }

    private static List<Kind> masks() {
        return List.of(
                mask("m2po", M2po.defaults(), "the fewest tokens that keep the second moment of the ratio in bounds"),
                mask(
                        "sequence_mask",
                        SequenceMask.defaults(),
                        "sequences of negative advantage from which the policy has drifted"),
                mask(
                        "stale_sequences",
                        StaleSequenceMask.defaults(),
                        "whole sequences with a token of too old a version"),
                mask(
                        "trust_region",
                        ExactTrustRegionMask.defaults(),
                        "sequences with a token whose stored distributions are too far apart"),
                mask(
                        "sampled_trust_region",
                        SampledTrustRegionMask.defaults(),
                        "sequences with a token whose ratio, or a mean divergence, is too large"),
                mask("forced_token", ForcedTokenMask.defaults(), "tokens that were forced on the sampler"),
                mask(
                        "divergence_filter",
                        DivergenceFilterMask.defaults(),
                        "tokens or sequences outside bounds of a divergence, as AReaL counts it"),
                mask("ipo", ProbabilityDifferenceMask.defaults(), "tokens whose probability has changed too much"),
                mask("dis", DoubleSidedMask.defaults(), "tokens whose ratio lies outside both sides of a range"),
                mask(
                        "binary_kl",
                        BinaryKlMask.defaults(),
                        "sequences whose mean divergence of the sampled token is too large"),
                mask("zero_advantage", ZeroAdvantageMask.defaults(), "groups without an advantage"),
                mask(
                        "batch_divergence",
                        BatchDivergenceFilter.defaults(),
                        "the whole batch if the policy has left it behind"),
                mask(
                        "random_rejection",
                        RandomRejection.defaults(),
                        "a share at random, the control that a rejection must beat"),
                mask(
                        "length_trap",
                        LengthTrap.defaults(),
                        "nothing; reports whether long answers were rejected for being long"));
    }

    private static Kind mask(String name, Record defaults, String meaning) {
        return Kind.of(MaskStage.class, name, defaults, meaning);
    }

    private static List<Kind> rewards() {
        return List.of(
                reward("uniform_length", UniformLengthPenalty.defaults(), "a price for every token"),
                reward(
                        "group_adaptive_length",
                        GroupAdaptiveLengthPenalty.defaults(),
                        "a price for every token that follows the solve rate of the group"),
                reward(
                        "anchor_length",
                        AnchorLengthPenalty.defaults(),
                        "a price for what exceeds the shortest correct answer of the group"),
                reward(
                        "kimi_length",
                        KimiLengthPenalty.defaults(),
                        "a reward for being short among the answers of the group"),
                reward(
                        "laser_length",
                        LaserLengthReward.defaults(),
                        "a bonus for correct answers within a target length"),
                reward(
                        "pass_at_k",
                        PassAtKFigure.defaults(),
                        "nothing; reports how often one of k samples would be correct"));
    }

    private static Kind reward(String name, Record defaults, String meaning) {
        return Kind.of(RewardStage.class, name, defaults, meaning);
    }

    private static List<Kind> weights() {
        return List.of(
                weighting("none", new None(), "every trained token weighs 1"),
                weighting("token", Token.defaults(), "the ratio of each token, truncated or within a band"),
                weighting(
                        "sequence", Sequence.defaults(), "the ratio of the whole sequence, truncated or within a band"),
                weighting(
                        "geometric_sequence",
                        GeometricSequenceWeights.defaults(),
                        "the geometric mean of the ratios of a sequence, truncated"),
                weighting(
                        "turn_geometric",
                        TurnWeights.defaults(),
                        "the geometric mean of the ratios of a turn, truncated"),
                weighting(
                        "turn_product",
                        TurnProductWeights.defaults(),
                        "the product of the ratios of a turn, truncated"),
                weighting(
                        "minpro",
                        MinimumPrefixWeights.defaults(),
                        "the ratio of a token times the smallest before it, truncated"),
                weighting(
                        "ctpo",
                        CumulativeWeights.defaults(),
                        "the product of the ratios so far, within bounds that widen with the position"),
                weighting(
                        "single_side_cap",
                        SingleSideCapWeights.defaults(),
                        "one ratio for the whole gap from behavior, capped from above"),
                weighting("shaped", ShapedWeights.defaults(), "a concave function of the ratio, below 1"),
                weighting(
                        "interpolated",
                        InterpolatedWeights.defaults(),
                        "the ratio of a policy between sampler and proximal, by staleness"),
                weighting("clamp", ClampedWeights.defaults(), "the ratio moved into bounds from both sides"));
    }

    private static Kind weighting(String name, Record defaults, String meaning) {
        return Kind.of(WeightStage.class, name, defaults, meaning);
    }

    /** The library's objectives by name, and by verl's where it has another. Their order is that of the configuration's reference. */
    private static List<Kind> objectives() {
        return List.of(
                objective(
                                "reinforce",
                                new Reinforce(),
                                "The policy gradient −w A log π under the batch's importance weights; no trust region.")
                        .also("gpg"),
                objective("ppo_clip", PpoClip.defaults(), "PPO's clipped surrogate with the dual clip.")
                        .also("vanilla"),
                objective(
                        "decoupled_ppo",
                        DecoupledPpo.defaults(),
                        "PPO's clip around the proximal policy, under weights of proximal over behavior (AReaL)."),
                objective(
                        "gspo",
                        Gspo.defaults(),
                        "PPO's clip on the sequence's ratio, a geometric mean over its tokens."),
                objective(
                        "gspo_token",
                        GspoToken.defaults(),
                        "The sequence's ratio with the token's gradient; what verl calls gspo."),
                objective(
                        "ctpo",
                        Ctpo.defaults(),
                        "PPO's clip on the product of the ratios so far, in a band that widens with the position."),
                objective("gmpo", Gmpo.defaults(), "The geometric mean of token ratios that are clipped one by one.")
                        .also("geo_mean"),
                objective(
                        "dppo_tv",
                        DppoTv.defaults(),
                        "The policy gradient with a bound on the change of a token's probability."),
                objective(
                        "dppo_kl",
                        DppoKl.defaults(),
                        "The policy gradient with a bound on the divergence of a token's probability."),
                objective("sapo", Sapo.defaults(), "A soft gate on a token's ratio instead of a clip."),
                objective("sequence_sapo", SequenceSapo.defaults(), "SAPO's soft gate on the sequence's ratio."),
                objective(
                        "cispo",
                        Cispo.defaults(),
                        "The ratio is clipped as a weight, so every token keeps a gradient."),
                objective("dro", Dro.defaults(), "The policy gradient with a quadratic leash; no ratio is formed."),
                objective(
                        "kl_cov",
                        KlCov.defaults(),
                        "The unclipped surrogate, with a penalty on the tokens through which entropy falls."),
                objective(
                        "clip_cov",
                        ClipCov.defaults(),
                        "PPO's clip, silenced on a few tokens drawn from those through which entropy falls."),
                objective(
                        "m2po",
                        M2poSurrogate.defaults(),
                        "The unclipped surrogate, whose trust region is the second-moment mask."),
                objective(
                        "oapl",
                        Oapl.defaults(),
                        "Regression of the sequence's log ratio to the behavior policy onto the optimal advantage."),
                objective("r2vpo", R2vpo.defaults(), "The surrogate with a penalty on the variance of its ratio."),
                objective(
                        "quatro",
                        Quatro.defaults(),
                        "A trust region for every prompt, whose multiplier is solved for over its answers."),
                objective("topr", new Topr(), "Good answers at weight 1, bad ones truncated at 1."),
                objective(
                        "aspo", Aspo.defaults(), "The ratio to the behavior policy, flipped for positive advantages."),
                objective(
                        "dispo",
                        Dispo.defaults(),
                        "The ratio to the behavior policy, bounded differently for correct and for incorrect answers."),
                objective(
                        "ipo",
                        Ipo.defaults(),
                        "The surrogate on tokens whose probability has not moved far, either way."),
                objective("luspo", Luspo.defaults(), "GSPO times the sequence's length."),
                objective(
                        "p3o",
                        P3o.defaults(),
                        "Weights capped at the effective sample size, and a pull back that grows as it falls."),
                objective(
                        "vespo", Vespo.defaults(), "The policy gradient under a reshaped weight of the whole answer."),
                objective(
                        "bypass_ppo_clip",
                        BypassPpoClip.defaults(),
                        "verl's bypass mode with PPO's clip: the trust region is around the behavior policy."),
                objective(
                        "bypass_reinforce",
                        BypassReinforce.defaults(),
                        "verl's bypass mode with the policy gradient: weights are made at every update."));
    }

    private static Kind objective(String name, Record defaults, String meaning) {
        return Kind.of(Objective.class, name, defaults, meaning);
    }
}
