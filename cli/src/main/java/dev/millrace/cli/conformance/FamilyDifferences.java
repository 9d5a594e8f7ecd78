package dev.millrace.cli.conformance;

/** How far one family is from the reference: cases, violations, and the largest differences met. Not thread-safe. */
final class FamilyDifferences {
    private final String family;
    private int cases;
    private int refusals;
    private int violating;
    private double largestAbsolute;
    private double largestRelative;
    private String worstRelative = "";

    FamilyDifferences(String family) {
        this.family = family;
    }

    void count(CaseResult result, boolean violates) {
        cases++;
        refusals += result instanceof CaseResult.Refused ? 1 : 0;
        violating += violates ? 1 : 0;
    }

    /** @param relative NaN or infinite where the expected number is 0; such a difference counts as absolute only */
    void add(String where, double absolute, double relative) {
        if (absolute > largestAbsolute) {
            largestAbsolute = absolute;
        }
        if (relative > largestRelative && Double.isFinite(relative)) {
            largestRelative = relative;
            worstRelative = where;
        }
    }

    static String header() {
        return String.format("%-22s %6s %9s %11s %14s %14s  %s", "family", "cases", "refusals", "violations",
            "max abs diff", "max rel diff", "largest relative at");
    }

    String row() {
        return String.format("%-22s %6d %9d %11d %14.3e %14.3e  %s", family, cases, refusals, violating,
            largestAbsolute, largestRelative, worstRelative);
    }
}
