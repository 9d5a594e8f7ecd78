package dev.millrace.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.chaos.check.Check;
import dev.millrace.chaos.fault.Fault;
import dev.millrace.chaos.fault.FaultKind;
import dev.millrace.chaos.observe.Holdings;
import dev.millrace.chaos.observe.ProcessFigures;
import dev.millrace.chaos.process.Troupe;
import dev.millrace.report.ReportOrigin;
import dev.millrace.workloads.JsonFile;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChaosCommandTest {
    @TempDir
    private Path directory;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @Test
    void shouldShowAReportThatWasWrittenBefore() throws IOException {
        Path report = directory.resolve("report.json");
        JsonFile.write(report, result());

        assertThat(run("--page", report.toString())).as(err.toString()).isZero();
        assertThat(out.toString())
                .contains("1 faults in 1 run, 1 survived; 10 rollouts, 0 lost, 0 duplicated; every promise was kept.")
                .contains("seed 7: chaos --seed 7")
                .containsPattern("\\| 7 +\\| scorer +\\| +20\\.5 \\| +21\\.0 \\| +200 \\|");
    }

    @Test
    void shouldRefuseAKindOfFaultThatNobodyKnows() {
        assertThat(run("--only", "kil")).isEqualTo(2);
        assertThat(err.toString()).contains("--only names no kind of fault: kil; there are [kill, ");
    }

    @Test
    void shouldRefuseAFolderWithSomethingInIt() throws IOException {
        Files.writeString(directory.resolve("mine"), "data");

        assertThat(run("--dir", directory.toString())).isEqualTo(2);
        assertThat(err.toString()).contains(directory + " is not empty; give --dir a new folder");
    }

    private int run(String... arguments) {
        String[] all = new String[arguments.length + 1];
        all[0] = "chaos";
        System.arraycopy(arguments, 0, all, 1, arguments.length);
        return ChaosCommand.commandLine()
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(all);
    }

    private static ChaosResult result() {
        ProcessFigures figures = new ProcessFigures(200, 20, 100);
        return new ChaosResult(
                ChaosResult.FORMAT,
                new ReportOrigin("chaos --seed 7", "abc", "m", 2, new ReportOrigin.Software("j", "4"), "now", 0.5),
                7,
                1,
                60,
                50,
                10,
                0,
                0,
                1.5,
                List.of(new FaultOutcome(
                        new Fault(1, FaultKind.KILL, "scorer", 0, 5), 10, "scorer", 4.0, 5.0, List.of("a note"))),
                List.<Troupe.Departure>of(),
                List.of(new Holdings.Change("scorer", 9, figures, figures, new Holdings.Live(5, 20.5, 21))),
                List.of(new Check("the ledger adds up to the record", true, "it does")));
    }
}
