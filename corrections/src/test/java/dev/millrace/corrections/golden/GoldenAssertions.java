package dev.millrace.corrections.golden;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * Compares what we compute with what a golden case expects, under the tolerances of {@code golden/README.md}.
 *
 * <ul>
 *   <li>scalars: {@code |x - e| <= 4 |e - e64| + 2e-6 |e| + 1e-7}, where e64 is the reference run in float64;
 *   <li>arrays: {@code |x - e_i| <= 4 max_abs + 2e-6 |e_i|}, where max_abs is the reference's own float32 noise;
 *   <li>integers (masks, counts) exactly; a NaN or an infinity only by itself.
 * </ul>
 *
 * <p>{@code actual} has the keys of {@code expected}: numbers, primitive arrays (a packed array stands for the
 * reference's list of lists), nested maps, or null. A key too many or too few fails. All differences are reported.
 */
public final class GoldenAssertions {
    private final GoldenCase golden;
    private final List<String> differences = new ArrayList<>();

    private GoldenAssertions(GoldenCase golden) {
        this.golden = golden;
    }

    /** Fails with every difference between {@code actual} and the case's {@code expected}. */
    public static void assertMatches(GoldenCase golden, Map<String, ?> actual) {
        assertMatches(golden, golden.expected(), actual);
    }

    /** As {@link #assertMatches(GoldenCase, Map)}, for one field of {@code expected} and everything below it. */
    public static void assertFieldMatches(GoldenCase golden, String field, Object actual) {
        GoldenAssertions run = new GoldenAssertions(golden);
        run.compare(
                field,
                golden.expected().path(field),
                golden.json().path("expected_fp64").path(field),
                actual);
        run.report();
    }

    private static void assertMatches(GoldenCase golden, JsonNode expected, Map<String, ?> actual) {
        GoldenAssertions run = new GoldenAssertions(golden);
        run.compare("", expected, golden.json().path("expected_fp64"), actual);
        run.report();
    }

    private void report() {
        if (!differences.isEmpty()) {
            throw new AssertionError(golden.name() + " " + golden.config() + "\n  " + String.join("\n  ", differences));
        }
    }

    private void compare(String path, JsonNode expected, JsonNode fp64, Object actual) {
        if (expected.isNull() || actual == null) {
            if (!expected.isNull() || actual != null) {
                differences.add(path + ": expected " + abbreviated(expected) + " but was " + actual);
            }
        } else if (expected.isObject()) {
            compareObject(path, expected, fp64, (Map<?, ?>) actual);
        } else if (expected.isArray()) {
            compareArray(path, expected, actual);
        } else if (actual instanceof Number number) {
            compareScalar(path, expected, fp64, number.doubleValue());
        } else {
            differences.add(path + ": expected " + expected + " but was a "
                    + actual.getClass().getSimpleName());
        }
    }

    private void compareObject(String path, JsonNode expected, JsonNode fp64, Map<?, ?> actual) {
        TreeSet<String> keys = new TreeSet<>();
        expected.fieldNames().forEachRemaining(keys::add);
        actual.keySet().forEach(key -> keys.add((String) key));
        for (String key : keys) {
            String below = path.isEmpty() ? key : path + "." + key;
            if (!expected.has(key)) {
                differences.add(below + ": not expected, was " + actual.get(key));
            } else if (!actual.containsKey(key)) {
                differences.add(below + ": missing, expected " + abbreviated(expected.get(key)));
            } else {
                compare(below, expected.get(key), fp64.path(key), actual.get(key));
            }
        }
    }

    private void compareScalar(String path, JsonNode expected, JsonNode fp64, double actual) {
        double e = GoldenCase.number(expected);
        double e64 = fp64 instanceof MissingNode || fp64.isNull() ? e : GoldenCase.number(fp64);
        double noise = Double.isFinite(e - e64) ? 4 * Math.abs(e - e64) : 0;
        double tolerance = expected.isIntegralNumber() ? 0 : noise + 2e-6 * Math.abs(e) + 1e-7;
        compareNumber(path, e, actual, tolerance);
    }

    private void compareArray(String path, JsonNode expected, Object actual) {
        List<JsonNode> flat = new ArrayList<>();
        List<String> places = new ArrayList<>();
        flatten("", expected, flat, places);
        if (!actual.getClass().isArray() || Array.getLength(actual) != flat.size()) {
            differences.add(path + ": expected " + flat.size() + " elements but was "
                    + (actual.getClass().isArray() ? Array.getLength(actual) + " elements" : actual));
            return;
        }
        double noise =
                4 * golden.json().path("fp32_dev").path(path).path("max_abs").asDouble(0);
        for (int i = 0; i < flat.size(); i++) {
            double e = GoldenCase.number(flat.get(i));
            double tolerance = flat.get(i).isIntegralNumber() ? 0 : noise + 2e-6 * Math.abs(e);
            compareNumber(path + places.get(i), e, ((Number) Array.get(actual, i)).doubleValue(), tolerance);
        }
    }

    private static void flatten(String place, JsonNode node, List<JsonNode> flat, List<String> places) {
        for (int i = 0; i < node.size(); i++) {
            String here = place + "[" + i + "]";
            if (node.get(i).isArray()) {
                flatten(here, node.get(i), flat, places);
            } else {
                flat.add(node.get(i));
                places.add(here);
            }
        }
    }

    private void compareNumber(String path, double expected, double actual, double tolerance) {
        boolean same = Double.isFinite(expected)
                ? Math.abs(actual - expected) <= tolerance
                : Double.compare(actual, expected) == 0;
        if (!same) {
            differences.add(path + ": expected " + expected + " but was " + actual + ", tolerance " + tolerance);
        }
    }

    private static String abbreviated(JsonNode node) {
        String text = node.toString();
        return text.length() > 80 ? text.substring(0, 80) + "..." : text;
    }
}
