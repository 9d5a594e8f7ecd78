package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.ratio.RatioKind;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
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
            "algorithm.critic",
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

    /**
     * The rules that one kind of settings is written by, in their current form, and the way from each older form to it.
     *
     * <p>Two things may happen to settings without a change of form: a class is renamed, which the text does not know of; a key
     * is added together with the value at which all is decided as before, its <i>neutral</i> value, at which the key is left out.
     * Everything else, such as a key renamed or removed, or a value spelled otherwise, is a {@link FormChange}.
     *
     * <p>Immutable and thread-safe.
     */
    public static final class SettingsForms {
        private static final int FIRST = 1;
        private static final Pattern ELEMENT = Pattern.compile("\\[[0-9]+]");

        private final List<FormChange> changes;
        private final Map<String, String> neutral;

        /**
         * @param changes from form 1 to form 2, from 2 to 3, and so on to the current one
         * @param neutral of keys that were added later: the value, as {@link CanonicalValues} writes it, at which they change
         *     nothing; by key, in the current form, where {@code []} stands for any element of a list
         */
        public SettingsForms(List<FormChange> changes, Map<String, String> neutral) {
            this.changes = List.copyOf(changes);
            this.neutral = Map.copyOf(neutral);
        }

        /** The form that is written now. */
        public int current() {
            return FIRST + changes.size();
        }

        /** These settings in the current form. */
        public CanonicalSettings write(SortedMap<String, String> values) {
            TreeMap<String, String> written = new TreeMap<>(values);
            written.entrySet().removeIf(entry -> entry.getValue().equals(neutral.get(ofAnyElement(entry.getKey()))));
            return new CanonicalSettings(current(), written);
        }

        /**
         * Where settings of a run, of any form, and settings of the current form differ; of an older form only what it knew is
         * compared.
         *
         * @throws IllegalArgumentException if the run's are of a form that is not known yet
         */
        public List<SettingDifference> differences(CanonicalSettings recorded, CanonicalSettings here) {
            requireKnown(recorded.form());
            SortedMap<String, String> translated = new TreeMap<>(recorded.values());
            Set<String> unknown = new HashSet<>();
            for (FormChange change : changes.subList(recorded.form() - FIRST, changes.size())) {
                unknown.addAll(change.unknownBefore());
                translated = change.translation().apply(translated);
            }
            Set<String> keys = new TreeSet<>(translated.keySet());
            keys.addAll(here.values().keySet());
            keys.removeAll(unknown);
            List<SettingDifference> differences = new ArrayList<>();
            for (String key : keys) {
                String there = valueOf(translated, key);
                String now = valueOf(here.values(), key);
                if (!there.equals(now)) {
                    differences.add(new SettingDifference(key, there, now));
                }
            }
            return differences;
        }

        /** @throws IllegalArgumentException if the form is newer than the current one, or no form */
        public void requireKnown(int form) {
            if (form < FIRST || form > current()) {
                throw new IllegalArgumentException(
                        "its settings are written in form " + form + ", and this version knows "
                                + (current() == FIRST ? "form 1" : "forms 1 to " + current())
                                + "; use the Millrace version that created the run, or a newer one");
            }
        }

        private static String ofAnyElement(String key) {
            return ELEMENT.matcher(key).replaceAll("[]");
        }

        private String valueOf(SortedMap<String, String> values, String key) {
            return Optional.ofNullable(values.get(key))
                    .orElse(neutral.getOrDefault(ofAnyElement(key), SettingDifference.ABSENT));
        }

        /**
         * How settings of one form are written in the next.
         *
         * @param what the change, as the end of "the forms differ in ..."
         * @param translation makes the next form's keys and values of this form's; gets a copy, which it may change
         * @param unknownBefore keys of the next form that this one did not know and for which no value is known to decide as before;
         *     they are not compared with a text of this form or an older one
         */
        public record FormChange(
                String what, UnaryOperator<SortedMap<String, String>> translation, Set<String> unknownBefore) {
            public FormChange {
                unknownBefore = Set.copyOf(unknownBefore);
            }
        }
    }
}
