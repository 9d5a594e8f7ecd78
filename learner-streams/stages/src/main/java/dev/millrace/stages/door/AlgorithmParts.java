package dev.millrace.stages.door;

import dev.millrace.api.catalogue.BuiltIn;
import dev.millrace.api.catalogue.Door;
import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.advantage.Gpg;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.advantage.GrpoPassk;
import dev.millrace.corrections.advantage.Opo;
import dev.millrace.corrections.advantage.ReinforcePlusPlusBaseline;
import dev.millrace.corrections.advantage.Rloo;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.staleness.SequenceMask;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Sequence;
import dev.millrace.corrections.weights.Token;
import java.util.List;
import java.util.stream.Stream;

/** The doors of the algorithm, and what the library brings through them. */
public final class AlgorithmParts implements BuiltIn {

    @Override
    public String name() {
        return "algorithm";
    }

    @Override
    public List<Door> doors() {
        return List.of(
                new Door("reward-stage", RewardStage.class, "algorithm.rewards", "shapes the rewards of a batch"),
                new Door(
                        "advantage",
                        AdvantageEstimator.class,
                        "algorithm.advantage",
                        "turns the rewards of a batch into advantages"),
                new Door("weights", WeightStage.class, "algorithm.weights", "makes importance weights"),
                new Door("mask", MaskStage.class, "algorithm.masks", "takes tokens out of the update"),
                new Door(
                        "objective",
                        Objective.class,
                        "algorithm.objective",
                        "gives the loss and its derivative by each log-prob"));
    }

    @Override
    public List<Kind> kinds() {
        return Stream.of(advantages(), weights(), masks(), Objectives.kinds())
                .flatMap(List::stream)
                .toList();
    }

    private static List<Kind> advantages() {
        return List.of(
                advantage("grpo", Grpo.defaults(), "the reward against the mean of its group"),
                advantage("rloo", Rloo.defaults(), "the reward against the mean of its siblings"),
                advantage(
                        "reinforce_plus_plus_baseline",
                        ReinforcePlusPlusBaseline.defaults(),
                        "the reward against the mean of its group, whitened over the batch"),
                advantage("opo", Opo.defaults(), "the reward against the length-weighted mean of its group"),
                advantage("gpg", Gpg.defaults(), "the reward against the mean of its group, scaled up for lost signal"),
                advantage("grpo_passk", GrpoPassk.defaults(), "the lead of the best of a group over its second"),
                advantage(
                        "soft_maximum",
                        SoftMaximum.defaults(),
                        "the reward against the value of the optimum that stays near the sampler"));
    }

    private static Kind advantage(String name, Record defaults, String meaning) {
        return Kind.of(AdvantageEstimator.class, name, defaults, meaning);
    }

    private static List<Kind> weights() {
        return List.of(
                weights("none", None.defaults(), "every trained token weighs 1"),
                weights("token", Token.defaults(), "the ratio of each token, truncated or within a band"),
                weights(
                        "sequence",
                        Sequence.defaults(),
                        "the ratio of the whole sequence, truncated or within a band"));
    }

    private static Kind weights(String name, Record defaults, String meaning) {
        return Kind.of(WeightStage.class, name, defaults, meaning);
    }

    private static List<Kind> masks() {
        return List.of(
                mask("m2po", M2po.defaults(), "the fewest tokens that keep the second moment of the ratio in bounds"),
                mask(
                        "sequence_mask",
                        SequenceMask.defaults(),
                        "sequences of negative advantage from which the policy has drifted"));
    }

    private static Kind mask(String name, Record defaults, String meaning) {
        return Kind.of(MaskStage.class, name, defaults, meaning);
    }
}
