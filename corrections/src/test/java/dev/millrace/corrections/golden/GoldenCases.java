package dev.millrace.corrections.golden;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The golden cases under {@code src/test/resources/golden}, one family per file; its README tells where they come from.
 *
 * <p>Made for {@code @ParameterizedTest @MethodSource}: a case prints as its name.
 */
public final class GoldenCases {
    private static final ObjectMapper JSON = new ObjectMapper();

    private GoldenCases() {}

    /** Every case of {@code family}, in file order; never empty. */
    public static List<GoldenCase> of(String family) {
        List<GoldenCase> cases = new ArrayList<>();
        for (JsonNode node : read(family).path("cases")) {
            cases.add(new GoldenCase(node));
        }
        if (cases.isEmpty()) {
            throw new IllegalStateException("no golden case of family " + family);
        }
        return cases;
    }

    /** A whole golden file that is not a list of cases, such as {@code presets}. */
    public static JsonNode read(String file) {
        String path = "/golden/" + file + ".json";
        try (InputStream in = GoldenCases.class.getResourceAsStream(path)) {
            if (in == null) {
                throw new IllegalStateException("no golden file " + path);
            }
            return JSON.readTree(in);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + path, e);
        }
    }
}
