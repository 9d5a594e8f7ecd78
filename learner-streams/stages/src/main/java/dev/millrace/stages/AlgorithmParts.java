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
import dev.millrace.corrections.objective.Objective;
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
        return Stream.of(
                        AdvantageKinds.all(), WeightKinds.all(), MaskKinds.all(), RewardKinds.all(), Objectives.kinds())
                .flatMap(List::stream)
                .toList();
    }

    static final class AdvantageKinds {
        private AdvantageKinds() {}

        static List<Kind> all() {
            return List.of(
                    kind("grpo", Grpo.defaults(), "the reward against the mean of its group")
                            .also("grpo_vectorized"),
                    kind("rloo", Rloo.defaults(), "the reward against the mean of its siblings"),
                    kind(
                            "reinforce_plus_plus",
                            ReinforcePlusPlus.defaults(),
                            "the reward to go of each token, whitened over the batch"),
                    kind(
                            "reinforce_plus_plus_baseline",
                            ReinforcePlusPlusBaseline.defaults(),
                            "the reward against the mean of its group, whitened over the batch"),
                    kind(
                            "remax",
                            Remax.defaults(),
                            "the reward to go of each token against the reward of the greedy answer"),
                    kind("opo", Opo.defaults(), "the reward against the length-weighted mean of its group"),
                    kind("gpg", Gpg.defaults(), "the reward against the mean of its group, scaled up for lost signal"),
                    kind(
                            "gdpo",
                            Gdpo.defaults(),
                            "each component of the reward against its group by itself, then whitened over the batch"),
                    kind("grpo_passk", GrpoPassk.defaults(), "the lead of the best of a group over its second"),
                    kind(
                            "pass_at_k",
                            PassAtKAdvantage.defaults(),
                            "the best of k draws as the reward of each that was drawn"),
                    kind("max_rl", MaxRl.defaults(), "the reward against the mean of its group, in units of that mean"),
                    kind(
                            "rl_zvp",
                            RlZvp.defaults(),
                            "the reward against the mean of its group, and the entropy of tokens where rewards are equal"),
                    kind(
                            "distillation",
                            Distillation.defaults(),
                            "the log-prob of a teacher against the policy's own, and the reward at a weight"),
                    kind(
                            "failure_distillation",
                            FailureDistillation.defaults(),
                            "a teacher's log-probs for wrong answers to hard prompts, the reward for the rest"),
                    kind("batch_mean", BatchMean.defaults(), "the reward against the mean of the batch"),
                    kind(
                            "value_tracker",
                            ValueTracker.defaults(),
                            "the reward against the success rate of its prompt over earlier batches, whitened over the batch"),
                    kind(
                            "ema_baseline",
                            EmaBaseline.defaults(),
                            "the reward against the moving average of earlier rewards of its task or prompt"),
                    kind("gae", Gae.defaults(), "generalised advantages of a critic's values"),
                    kind(
                            "optimal_token_baseline",
                            OptimalTokenBaseline.defaults(),
                            "the reward to go against the baseline of least variance at each position"),
                    kind(
                            "tir_optimal_token_baseline",
                            TirOptimalTokenBaseline.defaults(),
                            "the reward to go against the baseline of least variance at each count of trained tokens"),
                    kind(
                            "token_preserving_grpo",
                            TokenPreservingGrpo.defaults(),
                            "outcomes and rewards of turns or tokens, each against its group, added per token"),
                    kind(
                            "opob",
                            Opob.defaults(),
                            "the reward against the baseline of least variance off policy, by the norms of gradients"),
                    kind(
                            "soft_maximum",
                            SoftMaximum.defaults(),
                            "the reward against the value of the optimum that stays near the sampler"));
        }

        private static Kind kind(String name, Record defaults, String meaning) {
            return Kind.of(AdvantageEstimator.class, name, defaults, meaning);
        }
    }

    static final class MaskKinds {
        private MaskKinds() {}

        static List<Kind> all() {
            return List.of(
                    kind(
                            "m2po",
                            M2po.defaults(),
                            "the fewest tokens that keep the second moment of the ratio in bounds"),
                    kind(
                            "sequence_mask",
                            SequenceMask.defaults(),
                            "sequences of negative advantage from which the policy has drifted"),
                    kind(
                            "stale_sequences",
                            StaleSequenceMask.defaults(),
                            "whole sequences with a token of too old a version"),
                    kind(
                            "trust_region",
                            ExactTrustRegionMask.defaults(),
                            "sequences with a token whose stored distributions are too far apart"),
                    kind(
                            "sampled_trust_region",
                            SampledTrustRegionMask.defaults(),
                            "sequences with a token whose ratio, or a mean divergence, is too large"),
                    kind("forced_token", ForcedTokenMask.defaults(), "tokens that were forced on the sampler"),
                    kind(
                            "divergence_filter",
                            DivergenceFilterMask.defaults(),
                            "tokens or sequences outside bounds of a divergence, as AReaL counts it"),
                    kind("ipo", ProbabilityDifferenceMask.defaults(), "tokens whose probability has changed too much"),
                    kind("dis", DoubleSidedMask.defaults(), "tokens whose ratio lies outside both sides of a range"),
                    kind(
                            "binary_kl",
                            BinaryKlMask.defaults(),
                            "sequences whose mean divergence of the sampled token is too large"),
                    kind("zero_advantage", ZeroAdvantageMask.defaults(), "groups without an advantage"),
                    kind(
                            "batch_divergence",
                            BatchDivergenceFilter.defaults(),
                            "the whole batch if the policy has left it behind"),
                    kind(
                            "random_rejection",
                            RandomRejection.defaults(),
                            "a share at random, the control that a rejection must beat"),
                    kind(
                            "length_trap",
                            LengthTrap.defaults(),
                            "nothing; reports whether long answers were rejected for being long"));
        }

        private static Kind kind(String name, Record defaults, String meaning) {
            return Kind.of(MaskStage.class, name, defaults, meaning);
        }
    }

    static final class RewardKinds {
        private RewardKinds() {}

        static List<Kind> all() {
            return List.of(
                    kind("uniform_length", UniformLengthPenalty.defaults(), "a price for every token"),
                    kind(
                            "group_adaptive_length",
                            GroupAdaptiveLengthPenalty.defaults(),
                            "a price for every token that follows the solve rate of the group"),
                    kind(
                            "anchor_length",
                            AnchorLengthPenalty.defaults(),
                            "a price for what exceeds the shortest correct answer of the group"),
                    kind(
                            "kimi_length",
                            KimiLengthPenalty.defaults(),
                            "a reward for being short among the answers of the group"),
                    kind(
                            "laser_length",
                            LaserLengthReward.defaults(),
                            "a bonus for correct answers within a target length"),
                    kind(
                            "pass_at_k",
                            PassAtKFigure.defaults(),
                            "nothing; reports how often one of k samples would be correct"));
        }

        private static Kind kind(String name, Record defaults, String meaning) {
            return Kind.of(RewardStage.class, name, defaults, meaning);
        }
    }

    static final class WeightKinds {
        private WeightKinds() {}

        static List<Kind> all() {
            return List.of(
                    kind("none", None.defaults(), "every trained token weighs 1"),
                    kind("token", Token.defaults(), "the ratio of each token, truncated or within a band"),
                    kind(
                            "sequence",
                            Sequence.defaults(),
                            "the ratio of the whole sequence, truncated or within a band"),
                    kind(
                            "geometric_sequence",
                            GeometricSequenceWeights.defaults(),
                            "the geometric mean of the ratios of a sequence, truncated"),
                    kind(
                            "turn_geometric",
                            TurnWeights.defaults(),
                            "the geometric mean of the ratios of a turn, truncated"),
                    kind(
                            "turn_product",
                            TurnProductWeights.defaults(),
                            "the product of the ratios of a turn, truncated"),
                    kind(
                            "minpro",
                            MinimumPrefixWeights.defaults(),
                            "the ratio of a token times the smallest before it, truncated"),
                    kind(
                            "ctpo",
                            CumulativeWeights.defaults(),
                            "the product of the ratios so far, within bounds that widen with the position"),
                    kind(
                            "single_side_cap",
                            SingleSideCapWeights.defaults(),
                            "one ratio for the whole gap from behavior, capped from above"),
                    kind("shaped", ShapedWeights.defaults(), "a concave function of the ratio, below 1"),
                    kind(
                            "interpolated",
                            InterpolatedWeights.defaults(),
                            "the ratio of a policy between sampler and proximal, by staleness"),
                    kind("clamp", ClampedWeights.defaults(), "the ratio moved into bounds from both sides"));
        }

        private static Kind kind(String name, Record defaults, String meaning) {
            return Kind.of(WeightStage.class, name, defaults, meaning);
        }
    }
}
