package dev.millrace.stages;

import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.stage.WeightStage;
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

/** What makes importance weights. */
final class WeightKinds {
    private WeightKinds() {}

    static List<Kind> all() {
        return List.of(
                kind("none", None.defaults(), "every trained token weighs 1"),
                kind("token", Token.defaults(), "the ratio of each token, truncated or within a band"),
                kind("sequence", Sequence.defaults(), "the ratio of the whole sequence, truncated or within a band"),
                kind(
                        "geometric_sequence",
                        GeometricSequenceWeights.defaults(),
                        "the geometric mean of the ratios of a sequence, truncated"),
                kind("turn_geometric", TurnWeights.defaults(), "the geometric mean of the ratios of a turn, truncated"),
                kind("turn_product", TurnProductWeights.defaults(), "the product of the ratios of a turn, truncated"),
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
