package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.algorithm.Algorithm;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Diagnosis of a window of diagnostics.
 *
 * @param branches every branch of the tree that the evidence supports, the most severe first; one of {@link Cause#NONE} if
 *     there is none
 * @param pitfalls what the data show of mistakes in reading or answering it, in their order
 */
public record Diagnosis(List<Branch> branches, Set<Pitfall> pitfalls) {
    public Diagnosis {
        branches = List.copyOf(branches);
        pitfalls = pitfalls.isEmpty() ? Set.of() : Collections.unmodifiableSet(EnumSet.copyOf(pitfalls));
        if (branches.isEmpty()) {
            throw new IllegalArgumentException(
                    "a diagnosis has at least one branch; without a cause it is that of NONE");
        }
    }

    /**
     * A cause that the evidence supports.
     *
     * @param evidence the deciding numbers, each with its bound
     * @param fix the smallest fix, given the corrections in force
     */
    public record Branch(Cause cause, List<Evidence> evidence, Fix fix) {
        public Branch {
            evidence = List.copyOf(evidence);
        }

        /** Returns the fix as data that can be bound and tried. */
        public Prescription prescription(Algorithm inForce) {
            return Prescriber.of(this, inForce);
        }

        /** Returns the finding with its numbers in one sentence. */
        public String finding() {
            String numbers = evidence.stream().map(Evidence::toString).collect(Collectors.joining("; "));
            return cause.title()
                    + (cause == Cause.NONE ? "" : " (" + cause.letter() + "): " + cause.meaning())
                    + (numbers.isEmpty() ? "" : "; " + numbers);
        }

        /** Returns the finding with its fix. */
        public String sentence() {
            return finding() + ". To do: " + fix.advice();
        }
    }

    /**
     * One number and its bound.
     *
     * @param quantity what was measured, with its unit where it has one
     * @param above whether it is above the bound; else it is not
     */
    public record Evidence(String quantity, double value, boolean above, double bound) {
        @Override
        public String toString() {
            return String.format(Locale.ROOT, "%s is %.4g, %s %.4g", quantity, value, above ? "above" : "below", bound);
        }
    }

    public Cause cause() {
        return branches.get(0).cause();
    }

    public List<Evidence> evidence() {
        return branches.get(0).evidence();
    }

    public Fix fix() {
        return branches.get(0).fix();
    }

    /**
     * Returns the branch to fix first: the most severe one, even if others hold, since a correction against wrong
     * denominators corrects nothing.
     */
    public Branch first() {
        return branches.get(0);
    }

    public boolean isHealthy() {
        return cause() == Cause.NONE;
    }

    /** The most severe cause in one sentence, and the others by name. */
    public String sentence() {
        return branches.get(0).sentence()
                + (branches.size() == 1
                        ? ""
                        : ". Also: "
                                + branches.stream()
                                        .skip(1)
                                        .map(branch -> branch.cause().title() + " ("
                                                + branch.cause().letter() + ")")
                                        .collect(Collectors.joining(", ")));
    }
}
