package dev.millrace.conformance;

import dev.millrace.report.Column;
import dev.millrace.report.Table;
import java.util.Collection;
import java.util.List;

/** Largest differences of a family from the reference. Not thread-safe. */
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
     * @param relative not finite where the expected number is 0
     * @param share of the tolerance, above 1 for a violation
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

    public static Table table(Collection<FamilyDifferences> families) {
        return Table.of(
                "",
                List.of(
                        Column.text("family", of -> of.family),
                        Column.count("cases", of -> of.cases),
                        Column.count("refusals", of -> of.refusals),
                        Column.count("violations", of -> of.violating),
                        Column.significant("max abs diff", 4, of -> of.largestAbsolute),
                        Column.significant("max rel diff", 4, of -> of.largestRelative),
                        Column.percent("of tolerance", 1, of -> of.largestShare),
                        Column.text("at", of -> of.tightest)),
                families);
    }
}
