package dev.millrace.experiments;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * What a grid came to: a row per run, the tables, the picture, and every step and evaluation as CSV. A function of the
 * runs, so that an experiment that was interrupted and resumed has the same files as one that was not.
 */
public record StalenessReport(Grid grid, List<RunResult> runs, List<RunRow> rows) {

    public StalenessReport {
        runs = List.copyOf(runs);
        rows = List.copyOf(rows);
    }

    /** @param runs all of the grid's, in its order */
    public static StalenessReport of(Grid grid, List<RunResult> runs) {
        List<RunRow> rows = new ArrayList<>();
        for (RunResult run : runs) {
            rows.add(RunRow.of(
                    run,
                    runs.stream()
                            .filter(other -> other.key().lag() == 0
                                    && other.key().seed() == run.key().seed())
                            .toList()));
        }
        return new StalenessReport(grid, runs, rows);
    }

    /** Writes runs.csv, steps.csv, evaluations.csv, summary.json, tables.md and staleness.png. */
    public void write(Path directory) throws IOException {
        Files.createDirectories(directory);
        Files.write(
                directory.resolve("runs.csv"),
                lines(RunRow.COLUMNS, rows.stream().map(RunRow::csv).toList()));
        writeSteps(directory.resolve("steps.csv"));
        writeEvaluations(directory.resolve("evaluations.csv"));
        ObjectMapper json = new ObjectMapper();
        ObjectNode summary = json.createObjectNode();
        summary.put("java", System.getProperty("java.vm.name") + " " + System.getProperty("java.version"));
        summary.put("platform", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        summary.set("settings", json.valueToTree(grid.settings()));
        summary.set("runs", json.valueToTree(rows));
        json.writerWithDefaultPrettyPrinter()
                .writeValue(directory.resolve("summary.json").toFile(), summary);
        Files.writeString(directory.resolve("tables.md"), tables());
        StalenessPicture.write(this, directory.resolve("staleness.png"));
    }

    /** The tables of rewards and of drift, as Markdown. */
    public String tables() {
        return new StalenessTables(grid, rows).markdown();
    }

    private static List<String> lines(String header, List<String> rows) {
        List<String> lines = new ArrayList<>(List.of(header));
        lines.addAll(rows);
        return lines;
    }

    private void writeSteps(Path file) throws IOException {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file, StandardCharsets.UTF_8))) {
            out.println(
                    "lag,correction,seed,step,behavior_version,staleness,reward,ess_ratio,second_moment,kl,masked,clipped,"
                            + "step_scale,grad_norm,entropy");
            for (RunResult run : runs) {
                for (StepPoint p : run.points()) {
                    out.println(String.format(
                            Locale.ROOT,
                            "%s,%d,%d,%.2f,%.6f,%.6g,%.6g,%.6g,%.6f,%.6f,%.6f,%.6g,%.6f",
                            start(run),
                            p.step(),
                            p.behaviorVersion(),
                            p.staleness(),
                            p.reward(),
                            p.essRatio(),
                            p.secondMoment(),
                            p.kl(),
                            p.maskedFraction(),
                            p.clipFraction(),
                            p.stepScale(),
                            p.gradNorm(),
                            p.entropy()));
                }
            }
        }
    }

    private void writeEvaluations(Path file) throws IOException {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file, StandardCharsets.UTF_8))) {
            out.println("lag,correction,seed,step,reward,accuracy");
            for (RunResult run : runs) {
                for (Evaluation e : run.evaluations()) {
                    out.println(String.format(
                            Locale.ROOT, "%s,%d,%.6f,%.6f", start(run), e.step(), e.reward(), e.accuracy()));
                }
            }
        }
    }

    private static String start(RunResult run) {
        return run.key().lag() + "," + run.key().correction().key() + ","
                + run.key().seed();
    }
}
