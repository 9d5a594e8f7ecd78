package dev.millrace.stages.door;

import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.staleness.SequenceMask;
import java.util.List;

/** What takes tokens out of the update. */
final class MaskKinds {
    private MaskKinds() {}

    static List<Kind> all() {
        return List.of(
                kind("m2po", M2po.defaults(), "the fewest tokens that keep the second moment of the ratio in bounds"),
                kind(
                        "sequence_mask",
                        SequenceMask.defaults(),
                        "sequences of negative advantage from which the policy has drifted"));
    }

    private static Kind kind(String name, Record defaults, String meaning) {
        return Kind.of(MaskStage.class, name, defaults, meaning);
    }
}
