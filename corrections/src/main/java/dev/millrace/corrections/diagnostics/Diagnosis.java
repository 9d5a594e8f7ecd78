package dev.millrace.corrections.diagnostics;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * What a window of diagnostics says.
 *
 * @param cause the first cause of the tree that the evidence supports
 * @param evidence the numbers that decided, each with the bound it was held against
 * @param fix the smallest change that answers the cause, given what is in force
 */
public record Diagnosis(Cause cause, List<Evidence> evidence, Fix fix) {
    public Diagnosis {
        evidence = List.copyOf(evidence);
    }

    /**
     * One number and its bound.
     *
     * @param quantity what was measured, with its unit where it has one
     * @param value the number
     * @param above whether it is above the bound; else it is below
     * @param bound what it was compared with
     */
    public record Evidence(String quantity, double value, boolean above, double bound) {
        @Override
        public String toString() {
            return String.format(Locale.ROOT, "%s is %.4g, %s %.4g", quantity, value, above ? "above" : "below", bound);
        }
    }

    /** The diagnosis in one sentence. */
    public String sentence() {
        String numbers = evidence.stream().map(Evidence::toString).collect(Collectors.joining("; "));
        return cause.letter() + ": " + cause.meaning() + " (" + numbers + "). " + fix.advice();
    }
}
