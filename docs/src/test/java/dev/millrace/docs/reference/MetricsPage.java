package dev.millrace.docs.reference;

import dev.millrace.runtime.metrics.StepMeter;
import dev.millrace.runtime.report.KnownFigures;
import dev.millrace.runtime.report.StepFigure;
import dev.millrace.runtime.report.VerlFigures;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

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

            verl's name stands where the figure is the same, by the source of %s. TensorBoard uses verl's name, or `step/` and the name in `steps.csv`;
            other columns of that file are under `stage/`, `recorded/` or `other/`.

            """;
    private static final String CORRECTION = """

            verl's own correction metrics are `millrace_rollout_corr_` and verl's name, such as `millrace_rollout_corr_chi2_token`, with the labels `role`
            and `stage`.

            ## Roles

            Prometheus adds `job` and `instance`. A role's process has its own rows, `train` has all.

            """;

    private MetricsPage() {}

    static String text() throws IOException {
        StringBuilder page = new StringBuilder(String.format(STEPS_HEAD, VerlFigures.SOURCE))
                .append(Tables.head("meter", "in steps.csv", "verl", "unit", "meaning"));
        for (StepFigure figure : KnownFigures.all()) {
            if (!figure.isText() && !figure.key().startsWith("recorded.")) {
                page.append(Tables.row(
                        Tables.code(StepMeter.of(figure.key()).orElseThrow().scraped()),
                        Tables.code(figure.key()),
                        Tables.code(figure.verlName().orElse("")),
                        figure.unit().equals("milliseconds") ? "seconds" : figure.unit(),
                        figure.meaning()));
            }
        }
        page.append(CORRECTION).append(Tables.head("meter", "type", "unit", "labels", "role", "meaning"));
        List<String> lines = Files.readAllLines(METERS);
        lines.stream().skip(1).filter(line -> !line.isBlank()).forEach(line -> {
            String[] cells = line.split(",", 6);
            page.append(Tables.row(
                    Tables.code(cells[0]), cells[1], cells[2], commas(cells[3]), commas(cells[4]), commas(cells[5])));
        });
        return page.toString();
    }

    private static String commas(String cell) {
        return cell.replace(";", ",");
    }
}
