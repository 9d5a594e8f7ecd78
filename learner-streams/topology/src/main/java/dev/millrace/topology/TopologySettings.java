package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.ratio.RatioKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.regex.Pattern;

/** What the topology's decisions depend on, of all that is configured. */
public final class TopologySettings {
    /**
     * Form 1 is the only one so far. A key that a later version adds is listed here with the
     * value that keeps the old decisions. That value must also be its default, since older configurations do not have
     * the key. Renaming, removing or respelling a key is a change of form.
     */
    public static final SettingsForms FORMS =
            new SettingsForms(List.of(), Map.of("algorithm.masks[].mean_token_kl", "0"));

    /** Not a key: follows from {@code topics.max_record_bytes}. */
    static final String MAX_VALUE_BYTES = "topology.max_value_bytes";

    /** How it is run, and how much memory it takes, changes when something is decided, which its journal says, not what. */
    private static final Set<String> UNDECIDING = Set.of("topology.runtime", "topology.join.payload_cache_bytes");

    /** What only scoring and updates read, before a batch is decided and after it. */
    private static final Set<String> OUTSIDE = Set.of(
            "algorithm.variant",
            "algorithm.objective",
            "algorithm.loss_agg_mode",
            "algorithm.kl",
            "algorithm.entropy",
            "algorithm.length_guard",
            "algorithm.minibatches",
            "algorithm.epochs",
            "algorithm.routing_replay");

    /** Not a key: follows from the objective. */
    static final String COMPARED = "algorithm.weights.compare";

    private static final List<String> THRESHOLDS =
            List.of("algorithm.weights.threshold", "algorithm.rejection.rollout_rs_threshold");

    private static final Pattern DECIMAL = Pattern.compile("[+-]?[0-9]*\\.?[0-9]+([eE][+-]?[0-9]+)?");

    private TopologySettings() {}

    /**
     * The settings of a topology in the current form.
     *
     * @param algorithm what is decided by
     * @param maxValueBytes largest value that the log takes
     */
    public static CanonicalSettings of(TopologyConfig config, Algorithm algorithm, int maxValueBytes) {
        SortedMap<String, String> values = CanonicalValues.of("topology", config);
        remove(values, UNDECIDING);
        SortedMap<String, String> decided = CanonicalValues.of("algorithm", algorithm);
        remove(decided, OUTSIDE);
        values.putAll(decided);
        values.put(
                COMPARED, algorithm.weightsCompare().map(TopologySettings::name).orElse("none"));
        THRESHOLDS.forEach(key -> values.computeIfPresent(key, TopologySettings::withPlainNumbers));
        values.put(MAX_VALUE_BYTES, Integer.toString(maxValueBytes));
        return FORMS.write(values);
    }

    private static String name(RatioKind kind) {
        return kind.name().toLowerCase(Locale.ROOT);
    }

    private static void remove(SortedMap<String, String> values, Set<String> groups) {
        values.keySet().removeIf(key -> groups.stream().anyMatch(it -> key.equals(it) || key.startsWith(it + ".")));
    }

    /** Thresholds are numbers in a text, such as {@code 0.5_2.0, 0.01}: each in its canonical form where it is a plain one. */
    private static String withPlainNumbers(String key, String quoted) {
        String text = quoted.substring(1, quoted.length() - 1);
        List<String> options = new ArrayList<>();
        for (String option : text.split(",")) {
            List<String> bounds = new ArrayList<>();
            for (String bound : option.replaceAll("\\s", "").split("_")) {
                bounds.add(
                        DECIMAL.matcher(bound).matches()
                                ? CanonicalValues.number(key, Double.parseDouble(bound))
                                : bound);
            }
            options.add(String.join("_", bounds));
        }
        return '"' + String.join(",", options) + '"';
    }
}
