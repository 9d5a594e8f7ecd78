package dev.millrace.experiments;

import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Picture;
import dev.millrace.report.Report;
import dev.millrace.report.Section;
import dev.millrace.report.Series;
import dev.millrace.runtime.config.ConfigException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;

/** Final reward and ESS ratio over lag, means of the seeds, drawn from a published {@code runs.csv}. */
public record StalenessPicture(List<Row> rows) {
    record Row(int lag, Correction correction, double lastReward, double essRatio) {}

    public StalenessPicture {
        rows = List.copyOf(rows);
    }

    /** @throws IllegalArgumentException naming the line that does not parse */
    public static StalenessPicture of(Path csv) throws IOException {
        List<String> lines = Files.readAllLines(csv);
        List<String> names =
                lines.isEmpty() ? List.of() : Arrays.asList(lines.get(0).split(","));
        int[] columns = List.of("lag", "correction", "last_reward", "ess_ratio").stream()
                .mapToInt(names::indexOf)
                .toArray();
        if (Arrays.stream(columns).anyMatch(column -> column < 0) || lines.size() < 2) {
            throw new IllegalArgumentException(
                    csv + " is not a runs.csv of an experiment: its first line must name lag,"
                            + " correction, last_reward and ess_ratio, and a run must follow");
        }
        Row[] rows = new Row[lines.size() - 1];
        for (int i = 1; i < lines.size(); i++) {
            String[] cells = lines.get(i).split(",", -1);
            try {
                rows[i - 1] = new Row(
                        Integer.parseInt(cells[columns[0]]),
                        Correction.of(cells[columns[1]]),
                        Double.parseDouble(cells[columns[2]]),
                        Double.parseDouble(cells[columns[3]]));
            } catch (IllegalArgumentException | ArrayIndexOutOfBoundsException | ConfigException e) {
                throw new IllegalArgumentException(
                        csv + ", line " + (i + 1) + ", is no run: " + lines.get(i) + " (" + e.getMessage() + ")", e);
            }
        }
        return new StalenessPicture(Arrays.asList(rows));
    }

    public void write(Path png) throws IOException {
        List<Chart> charts = charts();
        Picture.write(
                Report.of("Corrections at lags", List.of()).with(Section.of("").with(charts)), charts, 1, png);
    }

    /** Lag 0 has no place on a logarithmic axis; its range stands in the title. */
    List<Chart> charts() {
        return List.of(
                chart("reward at the end", "reward", Row::lastReward),
                chart("ESS ratio before collapse or success", "ESS ratio", Row::essRatio));
    }

    private Chart chart(String title, String name, ToDoubleFunction<Row> value) {
        Map<Correction, Map<Integer, Double>> means = new LinkedHashMap<>();
        rows.forEach(row -> means.computeIfAbsent(row.correction(), each -> new TreeMap<>())
                .computeIfAbsent(row.lag(), lag -> mean(row.correction(), lag, value)));
        double[] onPolicy = means.values().stream()
                .filter(each -> each.containsKey(0))
                .mapToDouble(each -> each.get(0))
                .toArray();
        String atZero = onPolicy.length == 0
                ? ""
                : String.format(
                        Locale.ROOT,
                        "; at lag 0 from %.2f to %.2f",
                        Arrays.stream(onPolicy).min().orElseThrow(),
                        Arrays.stream(onPolicy).max().orElseThrow());
        return Chart.of(
                title + atZero,
                Axis.of("lag").in("versions").logarithmic(),
                Axis.share(name),
                means.entrySet().stream()
                        .map(each -> series(each.getKey(), each.getValue()))
                        .toList());
    }

    private static Series series(Correction correction, Map<Integer, Double> byLag) {
        List<Map.Entry<Integer, Double>> stale =
                byLag.entrySet().stream().filter(each -> each.getKey() > 0).toList();
        return Series.line(
                correction.title(),
                stale.stream().mapToDouble(Map.Entry::getKey).toArray(),
                stale.stream().mapToDouble(Map.Entry::getValue).toArray());
    }

    private double mean(Correction correction, int lag, ToDoubleFunction<Row> value) {
        return rows.stream()
                .filter(row -> row.correction().equals(correction) && row.lag() == lag)
                .mapToDouble(value)
                .average()
                .orElseThrow();
    }
}
