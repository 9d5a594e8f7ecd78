package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.CorrectionInForce;
import dev.millrace.corrections.diagnostics.StepFacts;
import dev.millrace.schemas.StageReport;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class StepDiagnosticsTest {
    private static StageReport report(String stage, long seen, long changed, Map<String, Double> values) {
        return new StageReport(stage, seen, changed, 1L, 0L, values);
    }

    private static StageReport report(String stage, long seen, long changed) {
        return report(stage, seen, changed, Map.of());
    }

    @Test
    void shouldReadWhatIsInForceFromTheReportsOfTheStages() {
        assertThat(StepDiagnostics.inForce(List.of())).isEqualTo(CorrectionInForce.NONE);
        assertThat(StepDiagnostics.inForce(List.of(report("staleness", 10, 1), report("age", 10, 0))))
                .isEqualTo(CorrectionInForce.NONE);
        assertThat(StepDiagnostics.inForce(
                        List.of(report("rollout_correction", 10, 0, Map.of("rollout_corr/kl", 0.1)))))
                .as("it measures, and rejects nothing")
                .isEqualTo(CorrectionInForce.NONE);
        assertThat(StepDiagnostics.inForce(List.of(
                        report("token_tis", 10, 1),
                        report("rollout_correction", 10, 0, Map.of("rollout_corr/rollout_rs_masked_fraction", 0.0)))))
                .isEqualTo(new CorrectionInForce(true, false, Optional.of(CorrectionUnit.TOKEN)));
        assertThat(StepDiagnostics.inForce(List.of(report("sequence_tis", 10, 1))))
                .isEqualTo(new CorrectionInForce(false, false, Optional.of(CorrectionUnit.SEQUENCE)));
        assertThat(StepDiagnostics.inForce(List.of(report("token_icepop", 10, 1))))
                .isEqualTo(new CorrectionInForce(false, true, Optional.of(CorrectionUnit.TOKEN)));
        assertThat(StepDiagnostics.inForce(List.of(report("m2po", 10, 0))).rejects())
                .isTrue();
    }

    @Test
    void shouldCountWhatIsRejectedByDivergenceAndOutsideOfABand() {
        TokenBatch tokens = new TokenBatch(new int[] {0, 2, 6}, new byte[] {1, 1, 1, 1, 1, 0});

        StepFacts facts = StepDiagnostics.facts(
                tokens,
                List.of(
                        report("staleness", 1000, 600),
                        report("rollout_correction", 400, 40, Map.of("rollout_corr/rollout_rs_masked_fraction", 0.1)),
                        report("m2po", 360, 60),
                        report("token_icepop", 400, 30)));

        assertThat(facts.rejected()).hasValue(0.25); // (40 + 60) / 400
        assertThat(facts.banded()).hasValue(0.075);
        assertThat(facts.responseTokens()).hasValue(3);
        assertThat(facts.clipFraction()).isEqualTo(OptionalDouble.empty());
    }
}
