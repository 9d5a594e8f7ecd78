package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import dev.millrace.report.Column;
import dev.millrace.report.Table;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Compares a result with its case's {@code expected}, under the tolerances of the golden README.
 *
 * <p>Scalars: {@code |x - e| <= 4 |e - e64| + 2e-6 |e| + 1e-7}. List elements: {@code |x - e| <= 4 max_abs + 2e-6
 * |e|}, with {@code max_abs} the float32 noise of the list. Masks, counts, texts and non-finite numbers must be equal,
 * unless only the float32 reference overflowed.
 */
public final class GoldenComparison {
    private static final double NOISE_FACTOR = 4.0;
    private static final double RELATIVE = 2e-6;
    private static final double ABSOLUTE = 1e-7;

    private final FamilyDifferences differences;
    private final List<String> violations = new ArrayList<>();
    private final JsonNode golden;

    private GoldenComparison(JsonNode golden, FamilyDifferences differences) {
        this.golden = golden;
        this.differences = differences;
    }

    /** Returns the violations and adds the case to {@code differences}. */
    public static List<String> compare(JsonNode golden, CaseResult result, FamilyDifferences differences) {
        GoldenComparison comparison = new GoldenComparison(golden, differences);
        comparison.compare(result);
        differences.count(result, !comparison.violations.isEmpty());
        return comparison.violations;
    }

    private void compare(CaseResult result) {
        JsonNode expected = golden.path("expected");
        boolean wantsRefusal = expected.has("error");
        if (!expected.isObject()) {
            violations.add("the case has no expected answer to compare with");
        } else if (result instanceof CaseResult.Computed computed) {
            if (wantsRefusal) {
                violations.add("computed, where the reference refuses: " + expected.get("error"));
            } else {
                walk("", expected, computed.output(), golden.path("expected_fp64"), null);
            }
        } else if (result instanceof CaseResult.Refused refused) {
            if (!wantsRefusal) {
                violations.add("refused, where the reference computes: " + refused.message());
            }
        } else if (result instanceof CaseResult.Failed failed) {
            violations.add("failed: " + failed.message());
        }
    }

    private void walk(String path, JsonNode expected, JsonNode actual, JsonNode fp64, @Nullable Double noise) {
        if (actual.isMissingNode()) {
            violations.add(path + " is missing");
        } else if (expected.isObject()) {
            walkObject(path, expected, actual, fp64, noise);
        } else if (expected.isArray()) {
            walkArray(path, expected, actual, noise);
        } else if (JsonNumbers.isNumber(expected) && JsonNumbers.isNumber(actual)) {
            number(path, JsonNumbers.read(expected, path), JsonNumbers.read(actual, path), fp64, noise);
        } else if (!expected.equals(actual)) {
            violations.add(path + " = " + actual + ", expected " + expected);
        }
    }

    private void walkObject(String path, JsonNode expected, JsonNode actual, JsonNode fp64, @Nullable Double noise) {
        for (Map.Entry<String, JsonNode> entry : expected.properties()) {
            String key = entry.getKey();
            walk(path + "/" + key, entry.getValue(), actual.path(key), fp64.path(key), noise);
        }
        for (Map.Entry<String, JsonNode> entry : actual.properties()) {
            if (!expected.has(entry.getKey())) {
                violations.add(
                        path + "/" + entry.getKey() + " = " + entry.getValue() + " is not in the expected layout");
            }
        }
    }

    private void walkArray(String path, JsonNode expected, JsonNode actual, @Nullable Double outerNoise) {
        if (!actual.isArray() || actual.size() != expected.size()) {
            violations.add(path + " has " + actual.size() + " elements, expected " + expected.size());
            return;
        }
        Double noise = outerNoise;
        if (noise == null) {
            noise = golden.path("fp32_dev")
                    .path(path.substring(1))
                    .path("max_abs")
                    .asDouble(0.0);
        }
        for (int i = 0; i < expected.size(); i++) {
            walk(path + "[" + i + "]", expected.get(i), actual.get(i), MissingNode.getInstance(), noise);
        }
    }

    private void number(String path, double expected, double actual, JsonNode fp64, @Nullable Double noise) {
        if (Double.isNaN(expected) && Double.isNaN(actual) || expected == actual) {
            return;
        }
        if (!Double.isFinite(expected)) {
            overflowed(path, expected, actual, fp64);
            return;
        }
        double difference = Math.abs(actual - expected);
        double tolerance = tolerance(path, expected, fp64, noise);
        if (!(difference <= tolerance)) {
            violations.add(path + " = " + actual + ", expected " + expected + " within " + tolerance);
        }
        differences.add(
                golden.path("name").asText() + path,
                difference,
                difference / Math.abs(expected),
                difference / tolerance);
    }

    /** In float64 the reference may not overflow; then that value counts. */
    private void overflowed(String path, double expected, double actual, JsonNode fp64) {
        double reference64 = JsonNumbers.isNumber(fp64) ? JsonNumbers.read(fp64, path) : expected;
        if (!(Math.abs(actual - reference64) <= RELATIVE * Math.abs(reference64))) {
            violations.add(path + " = " + actual + ", expected " + expected + ", in float64 " + reference64);
        }
    }

    private double tolerance(String path, double expected, JsonNode fp64, @Nullable Double noise) {
        if (path.replaceAll("\\[[0-9]+]", "").endsWith("mask")) {
            return 0.0;
        }
        if (noise != null) {
            return NOISE_FACTOR * noise + RELATIVE * Math.abs(expected);
        }
        double reference64 = JsonNumbers.isNumber(fp64) ? JsonNumbers.read(fp64, path) : expected;
        return NOISE_FACTOR * Math.abs(expected - reference64) + RELATIVE * Math.abs(expected) + ABSOLUTE;
    }

    /** Largest differences of a family from the reference. Not thread-safe. */
    public static final class FamilyDifferences {
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
}
