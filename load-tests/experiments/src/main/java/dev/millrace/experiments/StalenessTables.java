package dev.millrace.experiments;

import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/** The tables of an experiment: a row per correction, a column per lag, seeds taken together. */
final class StalenessTables {
    private final Grid grid;
    private final List<RunRow> rows;

    StalenessTables(Grid grid, List<RunRow> rows) {
        this.grid = grid;
        this.rows = rows;
    }

    String markdown() {
        return "Reward at the end (mean of the seeds), and what became of each seed: K keeps up with its on-policy run, B behind,"
                + " C collapsed.\n\n"
                + table(StalenessTables::reward)
                + "\nESS ratio / second moment: medians of the steps before the collapse or, where there was none, until the task was learnt (then"
                + " of the seeds).\n\n"
                + table(StalenessTables::drift);
    }

    private String table(Function<List<RunRow>, String> cell) {
        StringBuilder text = new StringBuilder("| correction |");
        grid.lags().forEach(lag -> text.append(" lag ").append(lag).append(" |"));
        text.append("\n| --- |").append(" --- |".repeat(grid.lags().size())).append('\n');
        for (Correction correction : grid.corrections()) {
            text.append("| ").append(correction.title()).append(" |");
            for (int lag : grid.lags()) {
                List<RunRow> seeds = rows.stream()
                        .filter(row -> row.correction() == correction && row.lag() == lag)
                        .toList();
                text.append(' ')
                        .append(seeds.isEmpty() ? "not run" : cell.apply(seeds))
                        .append(" |");
            }
            text.append('\n');
        }
        return text.toString();
    }

    private static String reward(List<RunRow> seeds) {
        return String.format(
                Locale.ROOT,
                "%.2f %s",
                seeds.stream().mapToDouble(RunRow::lastReward).average().orElse(Double.NaN),
                seeds.stream().map(row -> row.outcome().name().substring(0, 1)).collect(Collectors.joining()));
    }

    private static String drift(List<RunRow> seeds) {
        return String.format(
                Locale.ROOT, "%.2f / %.3f", median(seeds, RunRow::essRatio), median(seeds, RunRow::secondMoment));
    }

    private static double median(List<RunRow> seeds, ToDoubleFunction<RunRow> value) {
        double[] sorted = seeds.stream().mapToDouble(value).sorted().toArray();
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}
