package dev.millrace.docs.reference;

import dev.millrace.runtime.metrics.StepMeter;
import dev.millrace.runtime.report.KnownFigures;
import dev.millrace.runtime.report.StepFigure;
import dev.millrace.runtime.report.VerlFigures;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** Every meter: of the newest step, from the code that names its figures; of the roles, from the list that a test holds to a run. */
final class MetricsPage {
    private static final Path METERS = Path.of("../infra/prometheus/meters.csv");
    private static final String STEPS_HEAD = """
            # Metrics

            [How to watch a run](../how-to/metrics.md) configures Prometheus, TensorBoard and OpenTelemetry.
            [Alert rules](../../infra/prometheus/alerts.yaml) and dashboards for [learning](../../infra/grafana/learning.json),
            [corrections](../../infra/grafana/corrections.json), [flow](../../infra/grafana/flow.json) and
            [Kafka](../../infra/grafana/kafka.json) use these names. A name has at most 512 series; the rest is dropped and counted.

            ## The newest step

            Gauges of the learner's process, from the newest record of the training log. Label `role`: `learner` is the value at the step, `topology`
            the value at assembly (`recorded.` in `steps.csv`). What a step did not compute is absent.

            The second column is empty where `steps.csv` has the meter's name without `millrace_step_`. verl's name stands where the figure is the same,
            by the source of %s. TensorBoard uses verl's name, or `step/` and the name in `steps.csv`; other columns of that file are under `stage/`,
            `recorded/` or `other/`. Staleness is in versions.

            """;
    private static final String ROLES = """

            verl's own correction metrics are `millrace_rollout_corr_` and verl's name, such as `millrace_rollout_corr_chi2_token`, with the labels `role`
            and `stage`.

            ## Roles

            A role's process has the meters of its name and of `all`, `train` has all. `_total`: counter, else gauge. `_ratio`: share. Kafka's times in
            `_avg` are milliseconds. Labels are in braces; Prometheus adds `job` and `instance`.
            """;

    private MetricsPage() {}

    static String text() throws IOException {
        StringBuilder page = new StringBuilder(String.format(STEPS_HEAD, VerlFigures.SOURCE))
                .append(Tables.head("meter", "in steps.csv; verl's", "meaning"));
        for (StepFigure figure : KnownFigures.all()) {
            if (!figure.isText() && !figure.key().startsWith("recorded.")) {
                String meter = StepMeter.of(figure.key()).orElseThrow().scraped();
                page.append(Tables.row(
                        Tables.code(meter),
                        (meter.equals("millrace_step_" + figure.key()) ? "" : Tables.code(figure.key()))
                                + figure.verlName()
                                        .map(name -> "; " + Tables.code(name))
                                        .orElse(""),
                        meaning(meter, figure.unit(), figure.meaning())));
            }
        }
        page.append(ROLES);
        Map<String, StringBuilder> byRole = new LinkedHashMap<>();
        for (String line : Files.readAllLines(METERS)) {
            String[] cells = line.split(",", 6);
            if (cells.length == 6 && !cells[0].equals("name")) {
                if (cells[1].equals("counter") != cells[0].endsWith("_total")) {
                    throw new AssertionError("only counters end in _total: " + line);
                }
                byRole.computeIfAbsent(
                                commas(cells[4]),
                                role -> new StringBuilder("\n### " + role + "\n\n")
                                        .append(Tables.head("meter", "meaning")))
                        .append(Tables.row(
                                Tables.code(
                                        cells[0] + (cells[3].isEmpty() ? "" : "{" + cells[3].replace("; ", ",") + "}")),
                                meaning(cells[0], cells[2], commas(cells[5]))));
            }
        }
        byRole.values().forEach(page::append);
        return page.toString();
    }

    /** The meaning, with the unit where neither it nor the name says so. */
    private static String meaning(String meter, String unit, String meaning) {
        String singular = unit.replaceAll("s$", "");
        boolean isSaid = meter.contains(singular)
                || meaning.contains(singular)
                || meter.endsWith("_ratio")
                || meter.contains("_staleness_")
                || unit.endsWith("/s")
                || unit.equals("milliseconds");
        return isSaid ? meaning : meaning + " (" + unit + ")";
    }

    private static String commas(String cell) {
        return cell.replace(";", ",");
    }
}
