package dev.millrace.stages;

import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.advantage.BatchMean;
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
import dev.millrace.corrections.advantage.Rloo;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.advantage.TirOptimalTokenBaseline;
import dev.millrace.corrections.advantage.TokenPreservingGrpo;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.vcpo.Opob;
import java.util.List;

/** What turns rewards into advantages. */
final class AdvantageKinds {
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
                kind("batch_mean", BatchMean.defaults(), "the reward against the mean of the batch"),
                kind("gae", Gae.defaults(), "generalised advantages of recorded values"),
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
