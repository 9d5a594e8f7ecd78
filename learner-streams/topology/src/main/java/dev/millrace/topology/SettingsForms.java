package dev.millrace.topology;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * The rules that one kind of settings is written by, in their current form, and the way from each older form to it.
 *
 * <p>Two things may happen to settings without a change of form: a class is renamed, which the text does not know of; a key
 * is added together with the value at which all is decided as before, its <i>neutral</i> value, at which the key is left out.
 * Everything else, such as a key renamed or removed, or a value spelled otherwise, is a {@link FormChange}.
 *
 * <p>Immutable and thread-safe.
 */
public final class SettingsForms {
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
            throw new IllegalArgumentException("its settings are written in form " + form + ", and this version knows "
                    + (current() == FIRST ? "form 1" : "forms 1 to " + current())
                    + "; use the version of Millrace that the run was made with, or a newer one");
        }
    }

    private static String ofAnyElement(String key) {
        return ELEMENT.matcher(key).replaceAll("[]");
    }

    private String valueOf(SortedMap<String, String> values, String key) {
        return Optional.ofNullable(values.get(key))
                .orElse(neutral.getOrDefault(ofAnyElement(key), SettingDifference.ABSENT));
    }
}
