package dev.millrace.audit.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.topology.Samples;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class PackedStepsTest {
    private final PackedSteps packed = new PackedSteps();

    @Test
    void shouldKeepAllButTheEntries() {
        TrainingStep.Builder written = step(Map.of("loss", 0.5, "entropy", Double.NaN));
        TrainingStep step = written.setEntries(List.of(StepEntry.newBuilder()
                        .setTrainedTokens(3)
                        .setMaskedBy(null)
                        .build()))
                .build();

        assertThat(packed.pack(step)).isEqualTo(written.setEntries(null).build());
        assertThat(step.getEntries()).hasSize(1);
    }

    @Test
    void shouldFindEachMetricWhenNamesChange() {
        List<Map<String, Double>> written = List.of(
                Map.of("b", 1.0, "a", 2.0),
                Map.of("a", 3.0, "b", 4.0),
                Map.of("a", 5.0, "c", 6.0),
                Map.of("c", 7.0),
                Map.of());

        List<Map<String, Double>> kept = written.stream()
                .map(metrics -> packed.pack(step(metrics).build()).getMetrics())
                .toList();

        assertThat(kept).isEqualTo(written);
        assertThat(kept.get(1)).containsEntry("b", 4.0).doesNotContainKey("c");
        assertThat(kept.get(2).getOrDefault("b", -1.0)).isEqualTo(-1.0);
    }

    @Test
    void shouldRefuseToChangeMetrics() {
        Map<String, Double> metrics =
                packed.pack(step(Map.of("a", 1.0)).build()).getMetrics();

        assertThatThrownBy(() -> metrics.put("a", 2.0)).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> metrics.remove("a")).isInstanceOf(UnsupportedOperationException.class);
    }

    private static TrainingStep.Builder step(Map<String, Double> metrics) {
        return TrainingStep.newBuilder(Samples.starved(0, 1)).setMetrics(metrics);
    }
}
