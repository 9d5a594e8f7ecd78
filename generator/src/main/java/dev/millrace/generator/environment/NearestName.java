package dev.millrace.generator.environment;

import java.util.Collection;

/** Words the refusal of an unknown name: which name, the nearest known one, and all of them. */
public final class NearestName {

    private NearestName() {}

    static String sentence(String name, Collection<String> known) {
        String nearest = null;
        int smallest = Integer.MAX_VALUE;
        for (String candidate : known) {
            int distance = editDistance(String.valueOf(name), candidate);
            if (distance < smallest) {
                smallest = distance;
                nearest = candidate;
            }
        }
        return "'" + name + "'; did you mean " + nearest + "? Known are " + String.join(", ", known);
    }

    /** Levenshtein's distance: insertions, deletions and replacements that turn one into the other. */
    public static int editDistance(String from, String to) {
        int[] row = new int[to.length() + 1];
        for (int j = 0; j < row.length; j++) {
            row[j] = j;
        }
        for (int i = 1; i <= from.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j < row.length; j++) {
                int replaced = diagonal + (from.charAt(i - 1) == to.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
            }
        }
        return row[to.length()];
    }
}
