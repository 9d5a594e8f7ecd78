package dev.millrace.corrections.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class GoldenAssertionsTest {
    private static final String CASE = """
            {"name":"c","config":{},"input":{},
             "expected":{"loss":2.0,"mask":[[1,0],[1]],"grad":[[0.5],[-0.25]],"note":null,"metrics":{"std":"NaN"}},
             "expected_fp64":{"loss":2.001,"metrics":{"std":"NaN"}},
             "fp32_dev":{"grad":{"max_abs":1e-6,"max_rel":0.1}}}
            """;

    private final GoldenCase golden = new GoldenCase(parsed());

    private static com.fasterxml.jackson.databind.JsonNode parsed() {
        try {
            return new ObjectMapper().readTree(CASE);
        } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Map<String, Object> output() {
        Map<String, Object> output = new HashMap<>();
        output.put("loss", 2.0039);
        output.put("mask", new byte[] {1, 0, 1});
        output.put("grad", new float[] {0.500004f, -0.25f});
        output.put("note", null);
        output.put("metrics", Map.of("std", Double.NaN));
        return output;
    }

    @Test
    void shouldAcceptWhatLiesWithinTheTolerances() {
        assertThatCode(() -> GoldenAssertions.assertMatches(golden, output())).doesNotThrowAnyException();
    }

    @Test
    void shouldReportEveryDifference() {
        Map<String, Object> output = output();
        output.put("loss", 2.1);
        output.put("mask", new byte[] {1, 1, 1});
        output.put("grad", new double[] {0.5, -0.2501});
        output.put("note", 1.0);
        output.put("metrics", Map.of("std", 0.0, "extra", 1.0));

        assertThatThrownBy(() -> GoldenAssertions.assertMatches(golden, output))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("loss: expected 2.0 but was 2.1")
                .hasMessageContaining("mask[0][1]: expected 0.0 but was 1.0")
                .hasMessageContaining("grad[1][0]: expected -0.25 but was -0.2501")
                .hasMessageContaining("note: expected null but was 1.0")
                .hasMessageContaining("metrics.std: expected NaN but was 0.0")
                .hasMessageContaining("metrics.extra: not expected, was 1.0");
    }

    @Test
    void shouldReportMissingKeysAndWrongLengths() {
        Map<String, Object> output = output();
        output.remove("loss");
        output.put("mask", new byte[] {1, 0});

        assertThatThrownBy(() -> GoldenAssertions.assertMatches(golden, output))
                .hasMessageContaining("loss: missing, expected 2.0")
                .hasMessageContaining("mask: expected 3 elements but was 2 elements");
    }

    @Test
    void shouldReadABatchWithGroupsFromACase() {
        GoldenCase first = GoldenCases.of("rollout_correction").get(0);

        assertThat(first.batch().sequenceCount()).isEqualTo(8);
        assertThat(first.tokens("old_logprobs")).hasSize(first.batch().tokenCount());
    }
}
