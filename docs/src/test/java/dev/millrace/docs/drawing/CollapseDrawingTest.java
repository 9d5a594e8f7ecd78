package dev.millrace.docs.drawing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class CollapseDrawingTest {
    private static final Path MEASURED = Path.of("measurements/collapse");

    @Test
    void shouldDrawTheCommittedPictureFromTheCommittedValues() throws IOException {
        String svg = CollapseDrawing.svg(MEASURED.resolve("steps.csv"), MEASURED.resolve("evaluations.csv"));

        assertThat(Path.of("img/collapse.svg"))
                .as("docs/measurements/collapse.md has the command that draws it")
                .content()
                .isEqualTo(svg);
        assertThat(svg).contains("0.14  no correction, as recorded", "0.81  token TIS, √ESS steps", "<title>");
    }
}
