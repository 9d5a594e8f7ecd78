package dev.millrace.experiments;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.diagnostics.TreeBounds;
import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Evaluation;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportPage;
import dev.millrace.report.ReportText;
import dev.millrace.report.SampleMean;
import dev.millrace.report.Section;
import dev.millrace.report.Series;
import dev.millrace.report.Table;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Results of a grid: a row per run, tables, curves, steps and evaluations as CSV. A function of the runs. */
public record StalenessReport(Grid grid, List<GridRunResult> runs, List<RunRow> rows, CollapseAlarm alarm) {
    private static final List<String> FILES = List.of(
            "staleness.html", "tables.md", "summary.json", "runs.csv", "steps.csv", "evaluations.csv", "staleness.png");

    private record StepOf(RunKey key, StepPoint point) {}

    private record EvaluationOf(RunKey key, Evaluation made) {}

    private static final List<Column<StepOf>> STEPS = List.of(
            Column.count("lag", row -> row.key().lag()),
            Column.text("correction", row -> row.key().correction().key()),
            Column.count("seed", row -> row.key().seed()),
            Column.count("step", row -> row.point().step()),
            Column.count("behavior_version", row -> row.point().behaviorVersion()),
            step("staleness", StepPoint::staleness),
            step("reward", StepPoint::reward),
            step("ess_ratio", point -> point.drift().essRatio()),
            step("second_moment", point -> point.drift().secondMoment()),
            step("kl", point -> point.drift().kl()),
            step("tv", point -> point.drift().tv()),
            step("chi_square", point -> point.drift().chiSquare()),
            step("masked", point -> point.update().maskedFraction()),
            step("clipped", point -> point.update().clipFraction()),
            step("step_scale", point -> point.update().stepScale()),
            step("grad_norm", point -> point.update().gradNorm()),
            step("entropy", point -> point.update().entropy()),
            Column.countWhereKnown(
                    "starved",
                    row -> Optional.ofNullable(row.point().update().starved())
                            .map(is -> is ? 1L : 0L)
                            .orElse(null)));

    private static final List<Column<EvaluationOf>> EVALUATIONS = List.of(
            Column.count("lag", row -> row.key().lag()),
            Column.text("correction", row -> row.key().correction().key()),
            Column.count("seed", row -> row.key().seed()),
            Column.count("step", row -> row.made().step()),
            Column.number("reward", 6, row -> row.made().reward()),
            Column.number("accuracy", 6, row -> row.made().accuracy()));

    public StalenessReport {
        runs = List.copyOf(runs);
        rows = List.copyOf(rows);
    }

    private static Column<StepOf> step(String name, ToDoubleFunction<StepPoint> value) {
        return Column.significant(name, 6, row -> value.applyAsDouble(row.point()));
    }

    /** @param runs all of the grid's, in its order */
    public static StalenessReport of(Grid grid, List<GridRunResult> runs) {
        List<RunRow> rows = new ArrayList<>();
        for (GridRunResult run : runs) {
            rows.add(RunRow.of(
                    run,
                    runs.stream()
                            .filter(other -> other.key().lag() == 0
                                    && other.key().seed() == run.key().seed())
                            .toList()));
        }
        return new StalenessReport(grid, runs, rows, CollapseAlarm.of(runs));
    }

    /**
     * Writes page, tables, rows as CSV and JSON, and picture.
     *
     * @param said receives a line if there can be no picture
     */
    public void write(Path directory, Consumer<String> said) throws IOException {
        Report report = report();
        try (ReportFolder files = ReportFolder.begin(directory, FILES)) {
            files.write("staleness.html", ReportPage.of(report));
            files.write("tables.md", ReportText.markdown(report));
            ObjectNode summary = summary(grid, rows);
            summary.set("alarm", new ObjectMapper().valueToTree(alarm));
            files.write("summary.json", summary.toPrettyString());
            files.write("runs.csv", RunRow.COLUMNS, rows);
            files.write(
                    "steps.csv",
                    STEPS,
                    runs.stream()
                            .flatMap(run -> run.points().stream().map(point -> new StepOf(run.key(), point)))
                            .toList());
            files.write(
                    "evaluations.csv",
                    EVALUATIONS,
                    runs.stream()
                            .flatMap(run -> run.evaluations().stream().map(made -> new EvaluationOf(run.key(), made)))
                            .toList());
            files.draw("staleness.png", report, charts(), 2, said);
            files.finish();
        }
    }

    static ObjectNode summary(Grid grid, List<RunRow> rows) {
        ObjectMapper json = new ObjectMapper();
        ObjectNode summary = json.createObjectNode();
        summary.put("java", System.getProperty("java.vm.name") + " " + System.getProperty("java.version"));
        summary.put("platform", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        summary.set("settings", json.valueToTree(grid.settings()));
        summary.set("runs", json.valueToTree(rows));
        return summary;
    }

    public Report report() {
        return Report.of("Corrections at lags", List.of())
                .concluding(conclusion())
                .with(Section.of(
                                "Reward at the end (mean of the seeds), and what became of each seed: K keeps up with its on-policy"
                                        + " run, B behind, C collapsed.")
                        .with(table(StalenessReport::reward)))
                .with(Section.of(
                                "ESS ratio / second moment: medians of the steps before the collapse or, where there was none,"
                                        + " until the task was learnt (then of the seeds).")
                        .with(table(StalenessReport::drift)))
                .with(Section.of("Starved: steps that had no token to train on, of all seeds.")
                        .with(table(StalenessReport::starved)))
                .with(quadrants(rows))
                .with(alarm.section())
                .with(Section.of("Reward of the policy, mean of the seeds").with(charts()));
    }

    private Conclusion conclusion() {
        int lag = rows.stream().mapToInt(row -> row.key().lag()).max().orElse(0);
        String asked = "Which corrections keep up with their on-policy run at a lag of " + lag + "?";
        Map<Correction, List<RunRow>> there = rows.stream()
                .filter(row -> row.key().lag() == lag)
                .collect(Collectors.groupingBy(row -> row.key().correction(), LinkedHashMap::new, Collectors.toList()));
        List<String> keepUp = there.entrySet().stream()
                .filter(each -> each.getValue().stream().allMatch(row -> row.outcome() == RunRow.Outcome.KEEPS_UP))
                .map(each -> each.getKey().title())
                .toList();
        int seeds = there.values().stream().mapToInt(List::size).min().orElse(0);
        Optional<Map.Entry<Correction, List<RunRow>>> best = there.entrySet().stream()
                .max(Comparator.comparingDouble(each -> last(each.getValue()).mean()));
        Conclusion found = Conclusion.of(
                        asked,
                        keepUp.isEmpty()
                                ? "none of " + there.size() + " with every seed"
                                : keepUp.size() + " of " + there.size() + ": " + String.join(", ", keepUp),
                        keepUp.isEmpty() ? Health.LOOK : Health.NONE)
                .sure(
                        seeds < 2
                                ? "1 seed each, so that there is no interval"
                                : "95 % interval over " + seeds
                                        + " seeds; two whose intervals overlap are not told apart");
        return best.map(each -> found.resting(
                        "highest reward at the end, by " + each.getKey().title(),
                        last(each.getValue()).shown("%.2f")))
                .orElse(found);
    }

    private static SampleMean last(List<RunRow> seeds) {
        return SampleMean.of(
                seeds.stream().mapToDouble(row -> row.learning().lastReward()).toArray());
    }

    private Table table(Function<List<RunRow>, @Nullable String> cell) {
        List<Column<Correction>> columns = new ArrayList<>(List.of(Column.text("correction", Correction::title)));
        grid.lags()
                .forEach(lag -> columns.add(Column.text("lag " + lag, correction -> {
                    List<RunRow> seeds = rows.stream()
                            .filter(row -> row.key().correction().equals(correction)
                                    && row.key().lag() == lag)
                            .toList();
                    return seeds.isEmpty() ? "not run" : cell.apply(seeds);
                })));
        return Table.of("", columns, grid.corrections());
    }

    /** Outcomes of the stale runs by total variation, which bounds the bias of token weights, and χ², the variance of sequence weights. */
    static Section quadrants(List<RunRow> rows) {
        double tv = Math.sqrt(TreeBounds.DEFAULT.drift().driftingKl() / 2); // by Pinsker's inequality
        double ess = TreeBounds.DEFAULT.drift().lowSampleSize();
        List<RunRow> known = rows.stream()
                .filter(row -> row.key().lag() > 0 && row.drift().tv() != null)
                .toList();
        if (known.isEmpty()) {
            return Section.of("TV × χ²: not recorded in these runs.");
        }
        Map<String, List<RunRow>> quadrants = new LinkedHashMap<>();
        for (String name : List.of("low, low", "high, low", "low, high", "high, high")) {
            quadrants.put(name, new ArrayList<>());
        }
        known.forEach(row -> quadrants
                .computeIfAbsent(
                        (Objects.requireNonNull(row.drift().tv()) > tv ? "high, " : "low, ")
                                + (row.drift().essRatio() < ess ? "high" : "low"),
                        none -> new ArrayList<>())
                .add(row));
        List<Column<Map.Entry<String, List<RunRow>>>> columns =
                new ArrayList<>(List.of(Column.text("TV, χ²", Map.Entry::getKey)));
        for (RunRow.Outcome outcome : RunRow.Outcome.values()) {
            columns.add(Column.count(
                    outcome.name().toLowerCase(Locale.ROOT).replace('_', ' '),
                    each -> each.getValue().stream()
                            .filter(row -> row.outcome() == outcome)
                            .count()));
        }
        return Section.of(String.format(
                        Locale.ROOT,
                        "TV × χ² (medians as above): stale runs by TV per token, high above %.2f, and χ² of sequences, high"
                                + " above %.0f (ESS ratio below %.1f).",
                        tv,
                        1 / ess - 1,
                        ess))
                .with(Table.of("", columns, quadrants.entrySet()));
    }

    private static String reward(List<RunRow> seeds) {
        return String.format(
                Locale.ROOT,
                "%.2f %s",
                RunRow.mean(seeds, row -> row.learning().lastReward()),
                seeds.stream().map(row -> row.outcome().name().substring(0, 1)).collect(Collectors.joining()));
    }

    private static String drift(List<RunRow> seeds) {
        return String.format(
                Locale.ROOT,
                "%.2f / %.3f",
                RunRow.median(seeds, row -> row.drift().essRatio()),
                RunRow.median(seeds, row -> row.drift().secondMoment()));
    }

    private static @Nullable String starved(List<RunRow> seeds) {
        return seeds.stream().allMatch(row -> row.treatment().starved() != null)
                ? Long.toString(seeds.stream()
                        .mapToLong(row -> Objects.requireNonNull(row.treatment().starved()))
                        .sum())
                : null;
    }

    private List<Chart> charts() {
        List<Chart> charts = new ArrayList<>();
        for (int lag : grid.lags()) {
            charts.add(Chart.of(
                    "lag " + lag,
                    Axis.of("step after the warm start"),
                    Axis.share("reward"),
                    grid.corrections().stream()
                            .map(correction -> curve(lag, correction))
                            .toList()));
        }
        charts.add(Chart.of(
                "ESS ratio before collapse or success",
                Axis.of("lag").in("versions").logarithmic(), // lag 0 has no place on it: there the ratio is 1
                Axis.share("ESS ratio"),
                grid.corrections().stream().map(this::essOverLags).toList()));
        return charts;
    }

    private Series curve(int lag, Correction correction) {
        List<GridRunResult> seeds = runs.stream()
                .filter(run -> run.key().lag() == lag && run.key().correction().equals(correction))
                .toList();
        TreeSet<Long> steps = new TreeSet<>();
        seeds.forEach(run -> run.evaluations().forEach(evaluation -> steps.add(evaluation.step())));
        return Series.line(
                correction.title(),
                steps.stream().mapToDouble(Long::doubleValue).toArray(),
                steps.stream()
                        .mapToDouble(step -> seeds.stream()
                                .flatMap(run -> run.evaluations().stream())
                                .filter(evaluation -> evaluation.step() == step)
                                .mapToDouble(Evaluation::reward)
                                .average()
                                .orElseThrow())
                        .toArray());
    }

    private Series essOverLags(Correction correction) {
        List<Integer> lags = grid.lags().stream().sorted().toList();
        return Series.line(
                correction.title(),
                lags.stream().mapToDouble(Integer::doubleValue).toArray(),
                lags.stream()
                        .mapToDouble(lag -> rows.stream()
                                .filter(row -> row.key().lag() == lag
                                        && row.key().correction().equals(correction))
                                .mapToDouble(row -> row.drift().essRatio())
                                .average()
                                .orElse(Double.NaN))
                        .toArray());
    }
}
