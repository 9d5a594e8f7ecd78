package dev.millrace.replay.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Fix;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.report.WhatIfReport.StepUnder;
import dev.millrace.report.CsvFile;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WhatIfReportTest {
    @TempDir
    private Path folder;

    private static Report report(int steps) {
        ReplayTotals totals = new ReplayTotals(List.of("recorded"));
        for (long batch = 0; batch < steps; batch++) {
            totals.add(ReplayTotalsTest.step(batch, 1));
        }
        return WhatIfReport.of("a-run", false, totals, 1000, 2, List.of("reported too"));
    }

    @Test
    void shouldSayWhatTheCorrectionsMask() {
        assertThat(String.join("\n", ReportText.lines(report(3))))
                .contains("3 steps, 1,000 tokens, 1 correction in 2.0 s: 500 tokens/s")
                .contains("the run's own corrections reproduce every batch as")
                .contains("reported too")
                .containsPattern("recorded +10.00 % +50.00 % +1.000 +1.000");
        assertThat(ReportText.lines(report(4)))
                .anyMatch(line -> line.startsWith("1 of 4 batches do not match these corrections"));
    }

    @Test
    void shouldNotSpeakOfCorrectionsThatImportedRecordsDoNotHave() {
        ReplayTotals totals = new ReplayTotals(List.of("recorded", "other"));
        totals.add(step(0, Cause.NONE, Cause.NONE));
        String said = String.join(" ", ReportText.lines(WhatIfReport.of("a-run", true, totals, 1000, 2, List.of())))
                .replaceAll("\\s+", " ");
        assertThat(said)
                .contains("recorded is the algorithm given on import")
                .contains("other masks as much as the import's")
                .doesNotContain("the run's own");
    }

    private static Diagnosis of(Cause cause) {
        return new Diagnosis(List.of(new Diagnosis.Branch(cause, List.of(), Fix.NONE)), Set.of());
    }

    /** Two alternatives; the second masks the same. */
    private static ReplayedStep step(long batch, Cause recorded, Cause other) {
        ReplayedStep one = ReplayTotalsTest.step(batch, 1);
        return new ReplayedStep(
                one.batch(),
                true,
                one.rescored(),
                List.of(one.figures().get(0), one.figures().get(0)),
                List.of(Optional.of(of(recorded)), Optional.of(of(other))),
                List.of());
    }

    @Test
    void shouldNotTakeWhatWasNotJudgedForHealth() {
        ReplayTotals totals = new ReplayTotals(List.of("recorded", "other"));
        totals.add(step(0, Cause.CLIP_SATURATION, Cause.NONE));
        totals.add(step(1, Cause.CLIP_SATURATION, Cause.NONE));
        totals.add(step(2, Cause.TOKEN_DRIFT, Cause.TOKEN_DRIFT));
        String said = String.join(" ", ReportText.lines(WhatIfReport.of("a-run", false, totals, 1000, 2, List.of())))
                .replaceAll(" +", " ");
        assertThat(said)
                .contains("and 1 step is unhealthy in place of 1; clipping aside, 2 steps were unhealthy")
                .contains("recorded 2 1 0 other - 1 2")
                .contains("clipping under other corrections is known only by retraining");
    }

    @Test
    void shouldWriteThePageAndALineForEachStep() throws IOException {
        Report report = report(3);
        List<String> said = new ArrayList<>();
        try (ReportFolder files = ReportFolder.begin(folder.resolve("report"), WhatIfReport.FILES)) {
            try (CsvFile<StepUnder> csv = new CsvFile<>(files.file(WhatIfReport.STEPS), WhatIfReport.STEP_COLUMNS)) {
                csv.write(new StepUnder(ReplayTotalsTest.step(7, 0.5), 0, "recorded"));
            }
            WhatIfReport.write(files, report, said::add);
            files.finish();
        }
        assertThat(said).isEmpty();
        assertThat(folder.resolve("report").toFile().list())
                .containsExactlyInAnyOrder(
                        "report.html",
                        "report.json",
                        "steps.csv",
                        "masked_tokens.png",
                        "ess_ratio.png",
                        "mean_weight.png",
                        "k3.png");
        assertThat(Files.readAllLines(folder.resolve("report/steps.csv")))
                .containsExactly(
                        "batch,version,assembled_at_ms,reward,staleness_mean,as_recorded,corrections,tokens,sequences,"
                                + "masked_tokens,masked_sequences,ess_ratio,ess_ratio_truncated,step_scale,mean_weight,max_weight,"
                                + "changed_weights,second_moment,k1,k3,chi_square,gradient_power,mean_absolute_advantage,changed_advantages,diagnosis",
                        "7,8,0,0.5,2.0,true,recorded,10,2,0.1,0.5,0.5,1.0,1.0,1.0,1.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,");
        JsonNode json =
                new ObjectMapper().readTree(folder.resolve("report/report.json").toFile());
        assertThat(json.at("/sections/0/tables/0/rows/0/0").asText()).isEqualTo("recorded");
        assertThat(json.at("/sections/0/tables/0/rows/0/1").asDouble()).isEqualTo(0.1);
    }
}
