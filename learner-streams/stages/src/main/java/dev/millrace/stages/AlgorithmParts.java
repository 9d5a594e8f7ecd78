package dev.millrace.stages;

import dev.millrace.api.catalogue.BuiltIn;
import dev.millrace.api.catalogue.Door;
import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.WeightStage;
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
        return Stream.of(
                        AdvantageKinds.all(), WeightKinds.all(), MaskKinds.all(), RewardKinds.all(), Objectives.kinds())
                .flatMap(List::stream)
                .toList();
    }
}
