package dev.millrace.workloads;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.report.ReportOrigin;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FigureTest {
    @TempDir
    private Path folder;

    @Test
    void shouldHoldEveryBenchmarkAndWorkload() throws IOException {
        List<Figure> figures = Figure.all(Path.of("workloads"));
        assertThat(figures)
                .extracting(Figure::name)
                .startsWith("topology", "replay", "growth", "gateway", "backlog")
                .endsWith("slow-learner")
                .doesNotHaveDuplicates();
        assertThat(figures)
                .filteredOn(figure -> figure.name().equals("knee"))
                .extracting(figure -> figure.workload().orElseThrow().getFileName())
                .containsExactly(Path.of("knee.yaml"));
        assertThat(figures.get(0).workload()).isEmpty();
    }

    @Test
    void shouldTakeAboutAnHour() throws IOException {
        assertThat(Figure.all(Path.of("workloads")).stream()
                        .mapToDouble(figure -> figure.seconds().orElse(0))
                        .sum())
                .isBetween(45 * 60.0, 65 * 60.0);
    }

    @Test
    void shouldEstimateAWorkloadByItsPoints() throws IOException {
        Files.writeString(
                folder.resolve("closed.yaml"),
                "closed: {seconds: 20}\nsweep: {closed.batch_sequences: [32, 64], admission.eta: [0, 2]}");
        Files.writeString(folder.resolve("open.yaml"), "seconds: 10\nsweep: {load.rollouts_per_second: [100, 200]}");
        Files.writeString(folder.resolve("recorded.yaml"), "rollouts: {from: runs/x}");
        Files.writeString(folder.resolve("tokens.yaml"), "closed: {seconds: 0, tokens: 6000}");

        Map<String, OptionalDouble> seconds =
                Figure.all(folder).stream().skip(4).collect(Collectors.toMap(Figure::name, Figure::seconds));

        assertThat(seconds.get("closed").orElseThrow())
                .as("a start, and a plain loop and two runs of each batch size")
                .isCloseTo(15 + 2 * 3 * (20 + 4), within(1e-9));
        assertThat(seconds.get("open").orElseThrow())
                .as("a start, two baselines, two points and the first of them before")
                .isCloseTo(5 + 2 * (2 * 3 + 6) + 3 * (3 + 10 + 4), within(1e-9));
        assertThat(seconds.get("recorded")).isEmpty();
        assertThat(seconds.get("tokens")).isEmpty();
    }

    @Test
    void shouldTellTheOriginOfAReport() throws IOException {
        Figure figure = Figure.all(folder).get(0);
        ReportOrigin origin = new ReportOrigin("c", "abc", "m", 2, new ReportOrigin.Software("j", "4"), "now", 1);
        assertThat(figure.measured(folder)).isEmpty();

        JsonFile.write(folder.resolve(figure.report()), Map.of("origin", origin));
        assertThat(figure.measured(folder)).contains(origin);

        Files.writeString(folder.resolve(figure.report()), "{\"origin\": {\"comm");
        assertThat(figure.measured(folder)).as("cut short").isEmpty();
    }
}
