package dev.millrace.stages;

import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.length.AnchorLengthPenalty;
import dev.millrace.corrections.length.GroupAdaptiveLengthPenalty;
import dev.millrace.corrections.length.PassAtKFigure;
import dev.millrace.corrections.length.UniformLengthPenalty;
import dev.millrace.corrections.stage.RewardStage;
import java.util.List;

/** What shapes rewards. */
final class RewardKinds {
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
                        "pass_at_k",
                        PassAtKFigure.defaults(),
                        "nothing; reports how often one of k samples would be correct"));
    }

    private static Kind kind(String name, Record defaults, String meaning) {
        return Kind.of(RewardStage.class, name, defaults, meaning);
    }
}
