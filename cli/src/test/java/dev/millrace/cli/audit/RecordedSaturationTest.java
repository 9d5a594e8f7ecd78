package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The leaf of the decision tree whose patch acts within the step, so that decisions alone never show what it does: on a run that was
 * recorded (made by {@code make.sh} next to the archive), from the doctor's answer to learning again under its patch.
 */
class RecordedSaturationTest {
    private static final String ARCHIVE =
            Path.of("src", "test", "resources", "sick", "clip-saturation").toString();
    private static final double CLIP_BOUND = 0.2;

    @TempDir
    private Path folder;

    private static String millrace(List<Integer> statuses, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int ended = Main.commandLine()
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(arguments);
        assertThat(statuses).as(out + "\n" + err).contains(ended);
        return out.toString();
    }

    private static JsonNode treatment() throws IOException {
        return new ObjectMapper()
                .readTree(millrace(List.of(4), "doctor", "--archive", ARCHIVE, "--json"))
                .path("treatment");
    }

    @Test
    void shouldReachTheLeafAndProposeItsPatch() throws IOException {
        JsonNode treatment = treatment();

        assertThat(treatment.path("letter").asText())
                .as(treatment.toPrettyString())
                .isEqualTo("E");
        assertThat(treatment.path("fix").asText()).isEqualTo("lower_pressure");
        assertThat(treatment.path("answer").asText()).isEqualTo("epochs=1, which a replay of decisions cannot test");
        assertThat(treatment.path("patches").findValuesAsText("name"))
                .containsExactly("epochs=1", "epochs=1, minibatches=1");
        assertThat(treatment.path("patches").findValuesAsText("effect")).containsOnly("updates");
        assertThat(treatment.path("patches").findValues("refused")).isEmpty();
        assertThat(treatment.path("elsewhere").findValuesAsText("where"))
                .containsExactly("learner.step.optimizer.learning_rate", "algorithm.objective");
        assertThat(treatment.has("trial")).isFalse();
    }

    /** The clipped share of each step of a variant. */
    private static double[] clipped(List<String> rows, String variant) {
        List<String> head = Arrays.asList(rows.get(0).split(",", -1));
        return rows.stream()
                .skip(1)
                .map(row -> row.split(",", -1))
                .filter(cells -> cells[head.indexOf("variant")].equals(variant))
                .map(cells -> cells[head.indexOf("clip_fraction")])
                .mapToDouble(cell -> cell.isEmpty() ? Double.NaN : Double.parseDouble(cell))
                .toArray();
    }

    /**
     * As the doctor advises where no replay of decisions can try a patch. What the run itself clipped comes out again; its weights may
     * differ in their last bits, and the command then end with status 4, where the machine is not of the kind that recorded them.
     */
    @Test
    void shouldEndTheSaturationWhereItIsLearntAgainUnderThePatch() throws IOException {
        List<String> arguments =
                new ArrayList<>(List.of("replay", "--archive", ARCHIVE, "--retrain", "--evaluation-prompts", "0"));
        for (JsonNode patch : treatment().path("patches")) {
            Path file = folder.resolve(patch.path("name").asText().replace(", ", " ") + ".yaml");
            Files.writeString(file, patch.path("yaml").asText());
            arguments.addAll(List.of("--corrections", file.toString()));
        }
        arguments.addAll(List.of("--report", folder.resolve("report").toString()));
        millrace(List.of(0, 4), arguments.toArray(String[]::new));

        List<String> rows = Files.readAllLines(folder.resolve("report/retrain.csv"));
        double[] recorded = clipped(rows, "recorded");
        double[] onePass = clipped(rows, "epochs=1.yaml");
        double[] oneUpdate = clipped(rows, "epochs=1 minibatches=1.yaml");
        assertThat(recorded).hasSize(10);
        double[] newest = Arrays.copyOfRange(recorded, 6, 10);
        assertThat(Arrays.stream(newest).average().orElseThrow())
                .as("as the doctor read it from the run's own record")
                .isCloseTo(0.2898, within(5e-3))
                .isGreaterThan(CLIP_BOUND);
        assertThat(onePass).hasSize(10);
        assertThat(Arrays.stream(onePass, 6, 10).average().orElseThrow())
                .isPositive()
                .isLessThan(CLIP_BOUND);
        assertThat(oneUpdate)
                .as("with one update nothing has moved yet")
                .hasSize(10)
                .containsOnly(0);
    }
}
