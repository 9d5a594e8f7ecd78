package dev.millrace.stages.door;

import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Sequence;
import dev.millrace.corrections.weights.Token;
import java.util.List;

/** What makes importance weights. */
final class WeightKinds {
    private WeightKinds() {}

    static List<Kind> all() {
        return List.of(
                kind("none", None.defaults(), "every trained token weighs 1"),
                kind("token", Token.defaults(), "the ratio of each token, truncated or within a band"),
                kind("sequence", Sequence.defaults(), "the ratio of the whole sequence, truncated or within a band"));
    }

    private static Kind kind(String name, Record defaults, String meaning) {
        return Kind.of(WeightStage.class, name, defaults, meaning);
    }
}
