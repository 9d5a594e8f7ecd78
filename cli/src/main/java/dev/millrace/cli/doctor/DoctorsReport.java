package dev.millrace.cli.doctor;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.doctor.Finding;
import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Lines;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportPage;
import dev.millrace.report.ReportText;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.report.Treatment;
import dev.millrace.runtime.report.TreatmentReport;
import dev.millrace.schemas.run.RunIdentity;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * What the doctor says, in a terminal, as JSON and as a page.
 *
 * @param view the command that shows the run
 * @param treatment what the smallest fix would have done; empty if nothing was tried
 */
record DoctorsReport(RunIdentity of, String title, String view, List<Finding> findings, Optional<Treatment> treatment) {
    /** What {@link #write} leaves, the page first. */
    static final List<String> FILES = List.of("report.html", "report.json");

    /** Whether something is broken or sick. */
    boolean isIll() {
        return findings.stream().anyMatch(finding -> finding.weight().compareTo(Weight.SICK) <= 0);
    }

    List<String> lines() {
        List<String> lines = new ArrayList<>(List.of(title));
        for (Finding finding : findings) {
            lines.add("");
            lines.addAll(Lines.labelled(label(finding), finding.subject() + ": " + finding.sentence()));
            if (!finding.advice().isEmpty()) {
                lines.addAll(Lines.labelled("", "-> " + finding.advice()));
            }
        }
        treatment.ifPresent(tried -> {
            lines.add("");
            Section section = TreatmentReport.section(tried);
            lines.addAll(ReportText.lines(Report.of("", List.of())
                    .concluding(TreatmentReport.conclusion(tried))
                    .with(section)));
            if (!section.listing().isEmpty()) {
                lines.add("");
                section.listing().lines().forEach(line -> lines.add("    " + line));
            }
        });
        lines.add("");
        lines.add(isIll() ? "The run needs attention." : "Nothing is broken or sick.");
        return lines;
    }

    private static String label(Finding finding) {
        return finding.weight().name().toLowerCase(Locale.ROOT);
    }

    ObjectNode json() {
        ObjectNode tree = new ObjectMapper()
                .createObjectNode()
                .put("run_id", of.runId())
                .put("epoch", of.epoch())
                .put("ill", isIll());
        var array = tree.putArray("findings");
        findings.forEach(finding -> array.addObject()
                .put("weight", label(finding))
                .put("subject", finding.subject())
                .put("sentence", finding.sentence())
                .put("advice", finding.advice()));
        treatment.ifPresent(tried -> tree.set("treatment", TreatmentReport.json(tried)));
        return tree;
    }

    void write(Path folder, ReportOrigin origin) throws IOException {
        Report report = report().madeBy(origin);
        try (ReportFolder files = ReportFolder.begin(folder, FILES)) {
            files.write("report.json", report.json());
            files.write("report.html", ReportPage.of(report));
            files.finish();
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write a report to " + folder + ": " + e.getMessage(), e);
        }
    }

    private Report report() {
        Report report = Report.of("Doctor: " + title, List.of())
                .shownBy(view)
                .concluding(Conclusion.of(
                                "What is wrong with the run?",
                                findings.stream()
                                        .filter(finding -> finding.weight() != Weight.NOTE)
                                        .findFirst()
                                        .map(finding -> finding.subject() + ": " + finding.sentence())
                                        .orElse("nothing is broken or sick"),
                                isIll()
                                        ? Health.ILL
                                        : findings.stream().anyMatch(finding -> finding.weight() == Weight.WEAK)
                                                ? Health.LOOK
                                                : Health.OK)
                        .sure("by the rules of the doctor, over what is recorded"))
                .with(Section.of("Findings")
                        .with(Table.of(
                                "",
                                List.of(
                                        Column.text("weight", DoctorsReport::label),
                                        Column.text("about", Finding::subject),
                                        Column.text("what is so", Finding::sentence),
                                        Column.text("what to do", Finding::advice)),
                                findings)));
        return treatment
                .map(tried -> report.with(Section.of("Answer")
                                .noting(List.of(
                                        TreatmentReport.conclusion(tried).answer())))
                        .with(TreatmentReport.section(tried)))
                .orElse(report);
    }
}
