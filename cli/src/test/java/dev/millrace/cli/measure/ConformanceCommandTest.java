package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.conformance.ConformanceFamilies;
import dev.millrace.conformance.ConformanceFamily;
import dev.millrace.conformance.ConformanceFamily.ConformanceCase;
import dev.millrace.conformance.JsonNumbers;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class ConformanceCommandTest {
    @TempDir
    private Path directory;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    /** Scales each token by {@code factor}; refuses a negative factor; a factor of 13 is its defect. */
    private static final class Scaling implements ConformanceFamily {
        @Override
        public ObjectNode compute(ConformanceCase golden) {
            double factor = golden.config().number("factor");
            if (factor < 0) {
                throw new IllegalArgumentException("factor must not be negative: " + factor);
            }
            if (factor == 13) {
                throw new IllegalStateException("unlucky");
            }
            double[] values = golden.sequences().doubles("x");
            double sum = 0;
            for (int i = 0; i < values.length; i++) {
                values[i] *= factor;
                sum += values[i];
            }
            ObjectNode output = JsonNodeFactory.instance.objectNode();
            output.set("scaled", golden.sequences().ragged(values));
            output.set("sum", JsonNumbers.write(sum));
            output.set("mask", golden.sequences().ragged(golden.sequences().mask()));
            return output;
        }
    }

    private int run(String cases, String... more) throws IOException {
        Path file = directory.resolve("cases.json");
        Files.writeString(file, cases);
        CommandLine command =
                new CommandLine(new ConformanceCommand(new ConformanceFamilies(Map.of("scaling", new Scaling()))));
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        String[] args = new String[4 + more.length];
        args[0] = "--cases";
        args[1] = directory.toString();
        args[2] = "--out";
        args[3] = directory.resolve("results.out").toString();
        System.arraycopy(more, 0, args, 4, more.length);
        return command.execute(args);
    }

    private JsonNode results() throws IOException {
        return new ObjectMapper()
                .readTree(directory.resolve("results.out").toFile())
                .get("results");
    }

    private static String file(String... cases) {
        return "{\"format_version\":1,\"family\":\"scaling\",\"split\":\"test\",\"cases\":[" + String.join(",", cases)
                + "]}";
    }

    private static String golden(String name, String config, String expected, String rest) {
        return "{\"name\":\"" + name + "\",\"family\":\"scaling\",\"config\":" + config
                + ",\"input\":{\"padded_length\":2,\"sequences\":[{\"mask\":[1,0],\"x\":[1.0,2.0]},{\"mask\":[1],\"x\":[\"Infinity\"]}]}"
                + ",\"expected\":" + expected + rest + "}";
    }

    private static final String RIGHT =
            "{\"scaled\":[[2.0,4.0],[\"Infinity\"]],\"sum\":\"Infinity\",\"mask\":[[1,0],[1]]}";

    @Test
    void shouldWriteOneResultPerCaseInOrderWithNonFiniteNumbersAsText() throws IOException {
        int exit = run(file(golden("a", "{\"factor\":2.0}", "{}", ""), golden("b", "{\"factor\":-1}", "{}", "")));

        assertThat(exit).isZero();
        assertThat(results().get(0).toString())
                .isEqualTo("{\"name\":\"a\",\"family\":\"scaling\",\"output\":" + RIGHT + "}");
        assertThat(results().get(1).toString())
                .isEqualTo("{\"name\":\"b\",\"family\":\"scaling\","
                        + "\"error\":{\"message\":\"factor must not be negative: -1.0\"}}");
        assertThat(results()).hasSize(2);
    }

    @Test
    void shouldAnswerEveryOtherCaseWhenOneHasAnUnknownOptionAndExitWithTwo() throws IOException {
        int exit = run(file(
                golden("odd", "{\"factor\":2,\"faktor\":3}", RIGHT, ""), golden("fine", "{\"factor\":2}", RIGHT, "")));

        assertThat(exit).isEqualTo(2);
        assertThat(results().get(0).path("error").path("message").asText())
                .isEqualTo("unknown option config.faktor = 3; known here: factor");
        assertThat(results().get(1).has("output")).isTrue();
        assertThat(err.toString()).contains("odd: unknown option");
    }

    @Test
    void shouldReportUnknownFamilyAndOwnDefectAsErrorsAndExitWithTwo() throws IOException {
        String alien = golden("c", "{}", "{}", "").replace("\"family\":\"scaling\"", "\"family\":\"alien\"");
        int exit = run(file(alien, golden("d", "{\"factor\":13}", "{}", "")));

        assertThat(exit).isEqualTo(2);
        assertThat(results().get(0).path("error").path("message").asText())
                .isEqualTo("unknown family 'alien'; known: scaling");
        assertThat(results().get(1).path("error").path("message").asText()).contains("IllegalStateException: unlucky");
    }

    @Test
    void shouldAgreeUnderCheckAndPrintTheLargestDifferences() throws IOException {
        String near = RIGHT.replace("4.0", "4.000004");
        int exit = run(
                file(
                        golden(
                                "a",
                                "{\"factor\":2}",
                                near,
                                ",\"fp32_dev\":{\"scaled\":{\"max_abs\":1e-6,\"max_rel\":0}}"),
                        golden("b", "{\"factor\":-2}", "{\"error\":{\"type\":\"ValueError\",\"message\":\"?\"}}", "")),
                "--check");

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(out.toString())
                .containsPattern("scaling +2 +1 +0 +4\\.000e-06 +1\\.000e-06 +33\\.3 %")
                .contains("scaling  a/scaled[0][1]");
    }

    @Test
    void shouldCountDifferencesBeyondToleranceAsViolations() throws IOException {
        int exit = run(
                file(
                        golden("list", "{\"factor\":2}", RIGHT.replace("4.0", "4.00002"), ""),
                        golden(
                                "mask",
                                "{\"factor\":2}",
                                RIGHT.replace("[1,0]", "[1,1]"),
                                ",\"fp32_dev\":{\"mask\":{\"max_abs\":9}}"),
                        golden("infinite", "{\"factor\":2}", RIGHT.replace("\"sum\":\"Infinity\"", "\"sum\":1.0"), ""),
                        golden("missing", "{\"factor\":2}", RIGHT.replace("\"sum\"", "\"total\""), ""),
                        golden("should-refuse", "{\"factor\":2}", "{\"error\":{}}", ""),
                        golden("should-compute", "{\"factor\":-2}", RIGHT, "")),
                "--check");

        assertThat(exit).isEqualTo(1);
        assertThat(out.toString()).containsPattern("scaling +6 +1 +6 ");
        assertThat(err.toString())
                .contains("list: /scaled[0][1] = 4.0, expected 4.00002")
                .contains("mask: /mask[0][1] = 0.0, expected 1.0 within 0.0")
                .contains("infinite: /sum = Infinity, expected 1.0")
                .contains("missing: /total is missing (and 1 more)")
                .contains("should-refuse: computed, where the reference refuses")
                .contains("should-compute: refused, where the reference computes: factor must not be negative");
    }

    @Test
    void shouldTakeTheFloat64AnswerWhereOnlyFloat32Overflowed() throws IOException {
        String finite = "{\"name\":\"f\",\"family\":\"scaling\",\"config\":{\"factor\":1e60},"
                + "\"input\":{\"sequences\":[{\"mask\":[1],\"x\":[2.0]}]},\"expected\":{\"scaled\":[[2e60]],"
                + "\"sum\":\"Infinity\",\"mask\":[[1]]},\"expected_fp64\":{\"sum\":SUM}}";

        assertThat(run(file(finite.replace("SUM", "2e60")), "--check")).isZero();
        assertThat(run(file(finite.replace("SUM", "3e60")), "--check")).isEqualTo(1);
        assertThat(err.toString()).contains("f: /sum = 2.0E60, expected Infinity, in float64 3.0E60");
    }

    @Test
    void shouldRefuseSequencesWhoseFieldsDisagreeInLength() throws IOException {
        int exit = run(file(golden("a", "{\"factor\":2}", "{}", "").replace("[1,0]", "[1,0,1]")));

        assertThat(exit).isZero();
        assertThat(results().get(0).path("error").path("message").asText())
                .isEqualTo("sequence 0: x has 2 tokens, mask has 3");
    }

    @Test
    void shouldExitWithTwoForAFileThatIsNotAGoldenFile() throws IOException {
        assertThat(run("{\"format_version\":7}")).isEqualTo(2);
        assertThat(err.toString()).contains("cases.json: format_version must be 1, found 7");
    }
}
