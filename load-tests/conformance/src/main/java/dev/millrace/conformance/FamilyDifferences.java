package dev.millrace.conformance;

import java.util.Locale;

/**
 * How far one family is from the reference: cases, violations, the largest differences met, and the largest share of a
 * tolerance that one of them used up. Not thread-safe.
 */
public final class FamilyDifferences {
    private final String family;
    private int cases;
    private int refusals;
    private int violating;
    private double largestAbsolute;
    private double largestRelative;
    private double largestShare;
    private String tightest = "";

    public FamilyDifferences(String family) {
        this.family = family;
    }

    void count(CaseResult result, boolean violates) {
        cases++;
        refusals += result instanceof CaseResult.Refused ? 1 : 0;
        violating += violates ? 1 : 0;
    }

    /**
     * Adds one difference.
     *
     * @param relative not finite where the expected number is 0; such a difference counts as absolute only
     * @param share of the tolerance that is used up, above 1 for a violation
     */
    void add(String where, double absolute, double relative, double share) {
        largestAbsolute = Math.max(largestAbsolute, absolute);
        if (Double.isFinite(relative)) {
            largestRelative = Math.max(largestRelative, relative);
        }
        if (share > largestShare) {
            largestShare = share;
            tightest = where;
        }
    }

    public static String header() {
        return String.format(
                "%-22s %6s %9s %11s %14s %14s %13s  %s",
                "family", "cases", "refusals", "violations", "max abs diff", "max rel diff", "of tolerance", "at");
    }

    public String row() {
        return String.format(
                Locale.ROOT,
                "%-22s %6d %9d %11d %14.3e %14.3e %12.1f%%  %s",
                family,
                cases,
                refusals,
                violating,
                largestAbsolute,
                largestRelative,
                100 * largestShare,
                tightest);
    }
}
