package dev.millrace.chaos.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.chaos.ChaosResult;
import dev.millrace.chaos.FaultOutcome;
import dev.millrace.chaos.check.Check;
import dev.millrace.chaos.fault.Fault;
import dev.millrace.chaos.fault.FaultKind;
import dev.millrace.chaos.process.Troupe;
import dev.millrace.report.ReportOrigin;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class ChaosPageTest {
    @Test
    void shouldSayHowManyFaultsWereSurvivedAndHowSoonEachPartWasBack() {
        String page = ChaosPage.markdown(List.of(
                result(1, List.of(outcome(1, 4.0, 5.0), outcome(2, 6.0, 7.0)), List.of(), true),
                result(2, List.of(outcome(1, 9.0, 9.5)), List.of(), true)));

        assertThat(page)
                .contains("3 faults in 2 runs, 3 survived; 20 rollouts, 0 lost, 0 duplicated; every promise was kept.")
                .containsPattern("\\| scorer +\\| +3 +\\| +3 +\\| +6\\.0 +\\| +9\\.0 +\\| +7\\.0 +\\| +9\\.5 +\\|");
    }

    @Test
    void shouldNotCallARunHeldInWhichAFaultWasNotSurvivedOrAPromiseBrokenOrAProcessGone() {
        FaultOutcome ended = outcome(1, null, null);
        Troupe.Departure left = new Troupe.Departure("scorer-0", 3, "status 1, millrace: gone", 0);

        assertThat(result(1, List.of(outcome(1, 4.0, 5.0)), List.of(), true).isHeld())
                .isTrue();
        assertThat(result(1, List.of(ended), List.of(), true).isHeld()).isFalse();
        assertThat(result(1, List.of(), List.of(), false).isHeld()).isFalse();
        assertThat(result(1, List.of(), List.of(left), true).isHeld()).isFalse();
        assertThat(ChaosPage.markdown(List.of(result(3, List.of(ended), List.of(left), false))))
                .contains("1 faults in 1 run, 0 survived", "not every promise was kept", "BROKEN")
                .contains("seed 3: scorer-0 ended by itself, status 1, millrace: gone");
    }

    private static FaultOutcome outcome(int number, @Nullable Double part, @Nullable Double run) {
        return new FaultOutcome(
                new Fault(number, FaultKind.KILL, "scorer", 0, number), 10 * number, "scorer", part, run, List.of());
    }

    private static ChaosResult result(
            long seed, List<FaultOutcome> faults, List<Troupe.Departure> departures, boolean held) {
        return new ChaosResult(
                ChaosResult.FORMAT,
                new ReportOrigin("millrace chaos", "abc", "m", 2, new ReportOrigin.Software("j", "4"), "now", 0.5),
                seed,
                1,
                60,
                50,
                10,
                0,
                0,
                1.5,
                faults,
                departures,
                List.of(),
                List.of(new Check("the ledger adds up to the record", held, "it does")));
    }
}
