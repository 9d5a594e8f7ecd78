package dev.millrace.topology;

import java.util.Collections;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * Settings in their canonical form: a value for each key, sorted by key.
 *
 * <pre>
 *   millrace settings, form 1
 *   topology.batch.max_outstanding = 0
 *   topology.batch.order = completion
 *   ...
 * </pre>
 *
 * @param form which rules the keys and values follow, at least 1
 * @param values by key, as {@link CanonicalValues} writes them
 */
public record CanonicalSettings(int form, SortedMap<String, String> values) {
    private static final String TITLE = "millrace settings, form ";
    private static final String IS = " = ";

    public CanonicalSettings {
        if (form < 1) {
            throw new IllegalArgumentException("a form must be at least 1: " + form);
        }
        values = Collections.unmodifiableSortedMap(new TreeMap<>(values));
    }

    /**
     * Reads a text back.
     *
     * @throws IllegalArgumentException if it is no such text
     */
    public static CanonicalSettings parse(String text) {
        String[] lines = text.split("\n");
        try {
            if (!lines[0].startsWith(TITLE)) {
                throw new IllegalArgumentException("it does not begin with '" + TITLE + "'");
            }
            TreeMap<String, String> values = new TreeMap<>();
            for (int i = 1; i < lines.length; i++) {
                int at = lines[i].indexOf(IS);
                if (at < 1) {
                    throw new IllegalArgumentException("line " + (i + 1) + " has no '" + IS + "': " + lines[i]);
                }
                values.put(lines[i].substring(0, at), lines[i].substring(at + IS.length()));
            }
            return new CanonicalSettings(Integer.parseInt(lines[0].substring(TITLE.length())), values);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("not a text of settings: " + e.getMessage(), e);
        }
    }

    /** The form and every key with its value, a line each. */
    public String text() {
        StringBuilder text = new StringBuilder(TITLE).append(form).append('\n');
        values.forEach((key, value) -> text.append(key).append(IS).append(value).append('\n'));
        return text.toString();
    }

    /** The text's SHA-256. */
    public Fingerprint fingerprint() {
        return Fingerprint.of(form, DigestUtils.sha256(text()));
    }

    @Override
    public String toString() {
        return text();
    }
}
