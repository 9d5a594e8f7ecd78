package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class StalenessCommandTest {
    @TempDir
    private Path folder;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(String... options) {
        List<String> arguments = new ArrayList<>(List.of(
                "experiment",
                "staleness",
                "--digits",
                "2",
                "--batch-sequences",
                "16",
                "--group-size",
                "4",
                "--warm-up",
                "1",
                "--evaluate-every",
                "2",
                "--evaluation-prompts",
                "8"));
        arguments.addAll(List.of(options));
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return command.execute(arguments.toArray(String[]::new));
    }

    private static Map<String, List<Byte>> filesOf(Path report) throws IOException {
        Map<String, List<Byte>> files = new TreeMap<>();
        try (Stream<Path> all = Files.walk(report)) {
            all.filter(Files::isRegularFile).forEach(file -> {
                try {
                    List<Byte> bytes = new ArrayList<>();
                    for (byte b : Files.readAllBytes(file)) {
                        bytes.add(b);
                    }
                    files.put(report.relativize(file).toString(), bytes);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
        return files;
    }

    @Test
    void shouldHoldEveryCorrectionAgainstEveryOther() throws IOException {
        Path report = folder.resolve("all");

        int exit =
                run("--lags", "0,2", "--seeds", "1", "--steps", "4", "--parallel", "2", "--report", report.toString());

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(out.toString()).contains("28 runs of 4 steps, 0 of them done already", "M2PO+VCPO ");
        assertThat(Files.readAllLines(report.resolve("runs.csv"))).hasSize(1 + 28);
        assertThat(Files.readAllLines(report.resolve("steps.csv"))).hasSize(1 + 28 * 4);
        assertThat(Files.readAllLines(report.resolve("evaluations.csv"))).hasSize(1 + 28 * 3);
        assertThat(report.resolve("tables.md")).content().containsPattern("\\| correction +\\| lag 0 +\\| lag 2 +\\|");
        JsonNode summary =
                new ObjectMapper().readTree(report.resolve("summary.json").toFile());
        assertThat(summary.at("/settings/batchSequences").asInt()).isEqualTo(16);
        assertThat(summary.get("runs")).hasSize(28);
        assertThat(ImageIO.read(report.resolve("staleness.png").toFile()).getWidth())
                .isGreaterThan(800);
    }

    @Test
    void shouldWriteTheSameFilesWhenResumedAsInOneGo() throws IOException {
        List<String> grid =
                List.of("--lags", "0,2", "--seeds", "1", "--corrections", "none,token_tis", "--steps", "4", "--report");
        Path whole = folder.resolve("whole");
        Path resumed = folder.resolve("resumed");
        run(Stream.concat(grid.stream(), Stream.of(whole.toString())).toArray(String[]::new));
        run(
                "--lags",
                "0",
                "--seeds",
                "1",
                "--corrections",
                "token_tis",
                "--steps",
                "4",
                "--report",
                resumed.toString());
        Files.write(resolveRun(resumed, "lag-2.none.seed-1.json.unfinished"), new byte[] {'{'}); // killed while writing

        int exit = run(Stream.concat(grid.stream(), Stream.of(resumed.toString(), "--resume"))
                .toArray(String[]::new));

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(out.toString()).contains("4 runs of 4 steps, 1 of them done already");
        assertThat(filesOf(resumed)).isEqualTo(filesOf(whole));
    }

    private static Path resolveRun(Path report, String name) {
        return report.resolve("runs").resolve(name);
    }

    @Test
    void shouldShowTheRunsThatAreThereWithoutRunningAny() throws IOException {
        Path report = folder.resolve("part");
        run("--lags", "0", "--seeds", "1", "--corrections", "none", "--steps", "4", "--report", report.toString());

        int exit = run(
                "--lags",
                "0,2",
                "--seeds",
                "1,2",
                "--corrections",
                "none,m2po",
                "--steps",
                "4",
                "--no-runs",
                "--report",
                report.toString());

        assertThat(err.toString()).isEmpty();
        assertThat(exit).isZero();
        assertThat(report.resolve("tables.md"))
                .content()
                .containsPattern("\\| M2PO +\\| not run +\\| not run \\|")
                .containsPattern(" K +\\| not run \\|");
        assertThat(Files.readAllLines(report.resolve("runs.csv"))).hasSize(1 + 1);
        assertThat(run(
                        "--lags",
                        "0",
                        "--seeds",
                        "2",
                        "--corrections",
                        "none",
                        "--steps",
                        "4",
                        "--no-runs",
                        "--report",
                        report.toString()))
                .isEqualTo(1);
        assertThat(err.toString()).contains("has no run of this grid; run it without --no-runs first");
    }

    @Test
    void shouldNotMixExperiments() {
        Path report = folder.resolve("mixed");
        String[] first = {
            "--lags", "0", "--seeds", "1", "--corrections", "none", "--steps", "2", "--report", report.toString()
        };
        assertThat(run(first)).isZero();

        assertThat(run(first)).isEqualTo(1);
        assertThat(err.toString()).contains("holds the runs of an experiment already; give --resume");
        assertThat(run(
                        "--lags",
                        "0",
                        "--seeds",
                        "1",
                        "--corrections",
                        "none",
                        "--steps",
                        "4",
                        "--resume",
                        "--report",
                        report.toString()))
                .isEqualTo(1);
        assertThat(err.toString()).contains("lag-0.none.seed-1.json was run under other settings");
    }

    @Test
    void shouldTakeAFileAndNotMixItWithItsEarlierForm() throws IOException {
        Path file = folder.resolve("capped.yaml");
        String[] command = {
            "--lags",
            "0",
            "--seeds",
            "1",
            "--corrections",
            file + ",gmpo,decoupled_geo_rs",
            "--steps",
            "2",
            "--resume",
            "--report",
            folder.resolve("file").toString()
        };
        Files.writeString(file, "weights: {kind: token, threshold: '3'}");
        assertThat(run(command)).as(err.toString()).isZero();
        assertThat(folder.resolve("file/runs/lag-0.capped.seed-1.json")).exists();
        assertThat(folder.resolve("file/runs.csv")).content().contains("0,gmpo,1,", "0,decoupled_geo_rs,1,");

        Files.writeString(file, "weights: {kind: token, threshold: '4'}");
        assertThat(run(command)).isEqualTo(1);
        assertThat(err.toString()).contains("lag-0.capped.seed-1.json was run under other settings");
        assertThat(run("--corrections", "nothing")).isEqualTo(2);
        assertThat(err.toString()).contains("nothing is neither a file");
    }

    @Test
    void shouldRefuseWhatCannotBeCompared() {
        assertThat(run("--lags", "4", "--steps", "8")).isEqualTo(2);
        assertThat(run("--lags", "0,16", "--steps", "8")).isEqualTo(2);
        assertThat(run("--seeds", "1,1", "--steps", "256")).isEqualTo(2);
        assertThat(run("--parallel", "0", "--steps", "256")).isEqualTo(2);
        assertThat(err.toString())
                .contains(
                        "--lags must contain 0",
                        "at most --steps=8",
                        "--seeds must name each value once: [1, 1]",
                        "--parallel must be at least 1: 0");
    }

    @Test
    void shouldDrawTheRowsThatArePublishedAndNameALineThatIsNone() throws IOException {
        Path rows = Path.of("..", "docs", "measurements", "staleness.csv");
        assertThat(run(
                        "--rows",
                        rows.toString(),
                        "--report",
                        folder.resolve("drawn").toString()))
                .as(err.toString())
                .isZero();
        assertThat(ImageIO.read(folder.resolve("drawn/staleness.png").toFile()).getWidth())
                .isGreaterThan(500);

        Path broken = Files.writeString(
                folder.resolve("broken.csv"),
                "lag,correction,last_reward,ess_ratio\n4,none,0.5,0.9\n4,nothing,0.5,0.9\n");
        assertThat(run(
                        "--rows",
                        broken.toString(),
                        "--report",
                        folder.resolve("none").toString()))
                .isEqualTo(2);
        assertThat(err.toString()).contains("broken.csv, line 3, is no run: 4,nothing,0.5,0.9");
        assertThat(folder.resolve("none")).doesNotExist();
    }
}
