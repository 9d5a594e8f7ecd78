package dev.millrace.docs.reference;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Every meter, from the list that a test holds to the code. */
final class MetricsPage {
    private static final Path METERS = Path.of("../infra/prometheus/meters.csv");

    private MetricsPage() {}

    static String text() throws IOException {
        StringBuilder page = new StringBuilder(
                        "# Metrics\n\n`--metrics-port 9404` serves them for Prometheus on loopback, at "
                                + "`/metrics`. Kafka's own client meters are among them\nas far as they are listed here. "
                                + "[Alert rules](../../infra/prometheus/alerts.yaml) and a\n"
                                + "[Grafana dashboard](../../infra/grafana/millrace.json) use these names.\n\n")
                .append(Tables.head("name", "type", "labels", "meaning"));
        Files.readAllLines(METERS).stream()
                .skip(1)
                .filter(line -> !line.isBlank())
                .forEach(line -> {
                    String[] cells = line.split(",", 4);
                    page.append(Tables.row(Tables.code(cells[0]), cells[1], cells[2].replace(";", ","), cells[3]));
                });
        return page.toString();
    }
}
