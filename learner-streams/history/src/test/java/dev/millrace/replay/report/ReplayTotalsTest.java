package dev.millrace.replay.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.replay.DecidedFigures;
import dev.millrace.replay.MaskBreakdown;
import dev.millrace.replay.MaskedShare;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.ReplayedStep.RescoredStep;
import dev.millrace.replay.retrain.Agreement;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class ReplayTotalsTest {
    private static final int ESS = 2;

    static ReplayedStep step(long batch, double ess) {
        MaskBreakdown breakdown = new MaskBreakdown(
                new TreeMap<>(java.util.Map.of(1L, new MaskedShare(10, 1))), new TreeMap<>(), new TreeMap<>());
        DecidedFigures figures = new DecidedFigures(
                new MaskedShare(10, 1),
                new MaskedShare(2, 1),
                breakdown,
                new DecidedFigures.KeptTokens(0, 0, 0, 1, 1, 0),
                new DecidedFigures.CountingTokens(0, 0, 0),
                new DecidedFigures.StepSize(ess, 1, 1, 0),
                new DecidedFigures.Advantages(0, 0));
        return new ReplayedStep(
                new ReplayedStep.Batch(batch, batch + 1, 0, 0.5, 2),
                batch != 3,
                Optional.of(new RescoredStep(
                        new Agreement(1, batch == 2 ? 1 : 0, batch == 2 ? 0.5 : 0, 3), Optional.of(batch != 1))),
                List.of(figures),
                List.of(Optional.empty()),
                List.of());
    }

    @Test
    void shouldAddUpStepsAndKeepTheirCurve() {
        ReplayTotals totals = new ReplayTotals(List.of("recorded"));
        for (long batch = 0; batch < 4; batch++) {
            totals.add(step(batch, 1 - batch / 10.0));
        }
        assertThat(totals.steps()).isEqualTo(4);
        assertThat(totals.notAsRecorded()).isEqualTo(1);
        assertThat(totals.total(0).tokens()).isEqualTo(new MaskedShare(40, 4));
        assertThat(totals.total(0).breakdown().tokensByLag()).containsEntry(1L, new MaskedShare(40, 4));
        assertThat(totals.total(0).leastEss()).isEqualTo(0.7);
        assertThat(totals.curve(0, ESS)).containsExactly(1, 0.9, 0.8, 0.7);
        assertThat(totals.total(0).mean(ESS)).isCloseTo(0.85, within(1e-12));
        assertThat(totals.batches()).containsExactly(0, 1, 2, 3);
        assertThat(totals.agreement()).isEqualTo(new Agreement(4, 1, 0.5, 12));
        assertThat(totals.asTrained()).isEqualTo(3);
        assertThat(totals.notAsTrained()).isEqualTo(1);
    }

    @Test
    void shouldKeepACurveShortByTakingMeansOfNeighbours() {
        ReplayTotals totals = new ReplayTotals(List.of("recorded"));
        for (long batch = 0; batch < 4000; batch++) {
            totals.add(step(batch, batch % 2));
        }
        assertThat(totals.stride()).isEqualTo(4);
        assertThat(totals.batches()).hasSize(1000).startsWith(1.5, 5.5);
        assertThat(totals.curve(0, ESS)).containsOnly(0.5);
        assertThat(totals.steps()).isEqualTo(4000);
    }
}
