package dev.millrace.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.runtime.metrics.Meters;
import dev.millrace.runtime.metrics.OtlpCollector;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import io.opentelemetry.proto.common.v1.KeyValue;
import io.opentelemetry.proto.metrics.v1.Metric;
import io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class EvaluationMetersByOtlpTest {
    private static final String PROMPTS = "0123456789abcdef";

    private final LogConnection connection = new LogConnection(
            Map.of("bootstrap.servers", "none:1"),
            new RunTopics("t."),
            new RunIdentity("r-1", 0, "policy"),
            new InMemorySchemaRegistry());

    /** The gauges of an evaluation, as the list of all meters has them, as sent to a collector. */
    private static Set<String> listed() throws IOException {
        return Files.readAllLines(Path.of("../infra/prometheus/meters.csv")).stream()
                .filter(line -> line.startsWith("millrace_evaluator_"))
                .map(line -> line.split(",", 3))
                .filter(cells -> cells[1].equals("gauge"))
                .map(cells -> cells[0].replace('_', '.'))
                .collect(Collectors.toSet());
    }

    private static double value(Metric metric) {
        return metric.getGauge().getDataPoints(0).getAsDouble();
    }

    private static Map<String, String> labels(NumberDataPoint point) {
        return point.getAttributesList().stream()
                .collect(Collectors.toMap(
                        KeyValue::getKey, attribute -> attribute.getValue().getStringValue()));
    }

    /** Of four prompts with two responses 2, 1, 1 and 0 are correct: the mean is a half, and three prompts have one among two. */
    @Test
    void shouldSendEveryFigureOfTheNewestEvaluation() throws Exception {
        VersionEvaluation best = MadeEvaluation.of(4, PROMPTS, 2, 2, 1, 1);
        VersionEvaluation newest = MadeEvaluation.of(8, PROMPTS, 2, 1, 1, 0);
        try (OtlpCollector collector = new OtlpCollector()) {
            Meters meters = new Meters(collector.config(), "run-7");
            try (EvaluationOutputs outputs =
                    new EvaluationOutputs(collector.config(), connection, meters.registry(), PROMPTS)) {
                outputs.show(new Evaluations(List.of(best, newest)));
                meters.close(); // sends what there is
            }

            Map<String, Metric> sent = collector.last().metrics();
            assertThat(listed()).hasSizeGreaterThan(12);
            assertThat(sent).containsKeys(listed().toArray(String[]::new));
            assertThat(value(sent.get("millrace.evaluator.reward"))).isEqualTo(0.5);
            assertThat(value(sent.get("millrace.evaluator.evaluated.version"))).isEqualTo(8);
            assertThat(value(sent.get("millrace.evaluator.best.version"))).isEqualTo(4);
            assertThat(value(sent.get("millrace.evaluator.evaluations.since.best")))
                    .isEqualTo(1);
            assertThat(collector.series("millrace.evaluator.pass.at.k"))
                    .filteredOn(point -> labels(point).equals(Map.of("k", "2", "estimate", "unbiased")))
                    .singleElement()
                    .satisfies(point -> assertThat(point.getAsDouble()).isEqualTo(0.75));
        }
    }
}
