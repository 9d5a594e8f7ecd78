package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.doctor.Doctor;
import dev.millrace.audit.doctor.Examination;
import dev.millrace.audit.doctor.ExaminationReader;
import dev.millrace.audit.doctor.Finding;
import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.TypedCommand;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.Right;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.retrain.TrialLimit;
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
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.runtime.report.Treatment;
import dev.millrace.runtime.report.TreatmentReport;
import dev.millrace.runtime.train.ConsumerLag;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.resource.ResourceType;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace doctor}: diagnoses a run, most severe finding first. */
@Command(
        name = "doctor",
        subcommands = {AdviseCommand.class, MismatchCommand.class, PreflightCommand.class},
        description = "Diagnoses a run from its topics, most important finding first: ledger, gap between sampler "
                + "and learner, progress, serving, refusals, drops, masks, last steps. Tries the smallest fix, "
                + "a patch of algorithm:, on the last batches and reports the result. Changes nothing in the "
                + "run. After a rollback it judges the valid epoch; the ledger must add up over all epochs. On "
                + "an archive it judges ledger, gap and steps, of a part of a run only the gap.",
        footer = {
            "",
            "millrace doctor --run-dir runs/<run id>",
            "millrace doctor --bootstrap-servers kafka:9092 --run my-run",
            "millrace doctor --archive my-run.archive",
            "millrace doctor mismatch --run-dir runs/<run id>",
            "millrace doctor preflight --config my.yaml",
            "millrace doctor advise --config my.yaml",
            "",
            "Exit codes: 0 nothing is broken or critical; 4 something is; 1 a failure; 2 a mistake in the command line."
        })
public final class DoctorCommand extends ScreenCommand {
    /** Exit status if something is broken or critical. */
    static final int ATTENTION = 4;

    @Mixin
    private RunOrArchive which = new RunOrArchive();

    @Option(
            names = "--try",
            paramLabel = "BATCHES",
            description = "Most of the last batches to try the smallest fix on; 0 tries nothing (default: 256).")
    private int batches = TrialLimit.DEFAULT.batches();

    @Option(
            names = "--try-seconds",
            paramLabel = "SECONDS",
            description = "Start no trial batch after this time (default: 30).")
    private int seconds = Math.toIntExact(TrialLimit.DEFAULT.time().toSeconds());

    @Option(names = "--report", paramLabel = "DIR", description = "Folder for a page and JSON.")
    private Path report;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() throws InterruptedException, IOException {
        if (batches < 0 || seconds < 1) {
            throw mistake("--try must be at least 0 and --try-seconds at least 1: " + batches + " and " + seconds);
        }
        Optional<Path> archive = which.archive();
        if (archive.isEmpty()) {
            return ofRun(which.run());
        }
        try (ArchivedRun archived = new ArchivedRun(archive.get())) {
            ArchiveExamination examined =
                    ArchiveExamination.of(archived, which.run().file());
            return tell(new DoctorsReport(
                    archived.run(),
                    "run " + archived.run().runId() + ", " + examined.steps + " steps",
                    "./millrace view --archive " + archive.get(),
                    examined.findings(),
                    treatment(archived, examined.config, examined.diagnosis())));
        }
    }

    private int ofRun(RunOptions run) throws InterruptedException, IOException {
        try (AuditedRun audited = run.read()) {
            Examination examination = new ExaminationReader(audited.records(), RunOptions.PATIENCE, Clock.systemUTC())
                    .read(lags(audited.log()), run.alarms());
            return tell(new DoctorsReport(
                    audited.records().run(),
                    audited.title() + ", " + examination.steps().size() + " steps",
                    "./millrace view " + run.asGiven(),
                    new Doctor().findings(examination),
                    isTried(examination.offPolicy())
                            ? treatment(audited.recordedRun(), audited.config(), examination.offPolicy())
                            : Optional.empty()));
        }
    }

    private boolean isTried(Optional<Diagnosis> diagnosis) {
        return batches > 0 && diagnosis.filter(found -> !found.isHealthy()).isPresent();
    }

    private Optional<Treatment> treatment(RecordedRun recorded, MillraceConfig config, Optional<Diagnosis> diagnosis)
            throws InterruptedException {
        return isTried(diagnosis)
                ? Optional.of(Treatment.of(
                        recorded,
                        config,
                        diagnosis.orElseThrow(),
                        new TrialLimit(batches, Duration.ofSeconds(seconds)),
                        Runtime.getRuntime().availableProcessors()))
                : Optional.empty();
    }

    private int tell(DoctorsReport found) throws IOException {
        if (json) {
            out().println(found.json().toPrettyString());
        } else {
            found.lines().forEach(out()::println);
        }
        if (report != null) {
            found.write(report, ReportOrigin.here(TypedCommand.of(spec), null));
            if (!json) {
                out().println("results are in " + report + ": " + String.join(", ", DoctorsReport.FILES));
            }
        }
        return found.needsAttention() ? ATTENTION : 0;
    }

    /** No lags for an ended run's files, which have no consumers. */
    private static Map<String, Long> lags(Optional<LogConnection> log) throws InterruptedException {
        if (log.isEmpty()) {
            return Map.of();
        }
        LogConnection connection = log.get();
        Map<String, String> groups = new LinkedHashMap<>();
        for (String role : RunTopics.CONSUMERS) {
            groups.put(connection.group(role), role);
        }
        try (Admin admin = Admin.create(connection.as("doctor").admin())) {
            return new ConsumerLag(admin, groups).read();
        } catch (ExecutionException | TimeoutException e) {
            throw new RefusedRequestException(
                    e.getCause() instanceof AuthorizationException
                            ? "cannot read the lag of the run's consumer groups: "
                                    + Right.under(
                                                    ResourceType.GROUP,
                                                    connection.topics().prefix(),
                                                    AclOperation.DESCRIBE)
                                            .lacking(String.valueOf(connection
                                                    .clientProperties()
                                                    .get("bootstrap.servers")))
                            : "the cluster does not report the lag of the run's consumer groups: "
                                    + (e.getCause() == null
                                            ? "no answer in time"
                                            : e.getCause().getMessage()),
                    e);
        }
    }

    /** Examination of an archive: its batches and their contents. */
    static final class ArchiveExamination {
        private long steps;
        private @Nullable Diagnosis last;
        private long firstUnhealthy = -1;

        private final MillraceConfig config;
        private final ArchivedRun archive;
        private @Nullable Account account;

        private ArchiveExamination(ArchivedRun archive, MillraceConfig config) {
            this.archive = archive;
            this.config = config;
        }

        /** @param file the run's configuration, where the archive has none; else null */
        static ArchiveExamination of(ArchivedRun archive, @Nullable Path file) throws InterruptedException {
            archive.verify();
            MillraceConfig config = AuditedRun.configuration(archive, file);
            ArchiveExamination examined = new ArchiveExamination(archive, config);
            if (archive.missing().isEmpty()) {
                examined.account = new LedgerReader(archive).read(RunOptions.PATIENCE);
            }
            new WhatIf(archive, StepRange.ALL, List.of(new Alternative("recorded", config.algorithm())))
                    .replay(Runtime.getRuntime().availableProcessors(), examined::add);
            return examined;
        }

        private void add(ReplayedStep step) {
            steps++;
            step.diagnoses().get(0).ifPresent(diagnosis -> {
                last = diagnosis;
                if (firstUnhealthy < 0 && diagnosis.cause() != Cause.NONE) {
                    firstUnhealthy = step.batch().id();
                }
            });
        }

        /** Of the last steps; empty if nothing could be trained on. */
        Optional<Diagnosis> diagnosis() {
            return Optional.ofNullable(last);
        }

        /** Most severe first, then onset times, and limits of an archive. */
        List<Finding> findings() {
            List<Finding> findings = new ArrayList<>();
            if (account != null) {
                findings.addAll(
                        new Doctor().findings(Examination.recorded(archive.run().epoch(), account, diagnosis())));
                if (archive.origin().isPresent()) { // the stages are those of the import, not of the trainer
                    findings.removeIf(finding -> finding.subject().equals(Doctor.IDLE_STAGE));
                }
            } else {
                diagnosis().ifPresent(diagnosis -> findings.addAll(Doctor.offPolicy(diagnosis)));
            }
            if (firstUnhealthy >= 0) {
                findings.add(
                        new Finding(Weight.NOTE, "off policy", "first unhealthy step at batch " + firstUnhealthy, ""));
            }
            findings.add(new Finding(
                    Weight.NOTE,
                    "archive",
                    archive.missing()
                            .map(why -> "ledger and steps are not checked: " + why)
                            .orElse("serving, versions and evaluations are not checked"),
                    ""));
            return findings;
        }
    }

    /**
     * The doctor's report in a terminal, as JSON and as a page.
     *
     * @param treatment effect of the smallest fix; empty if nothing was tried
     */
    record DoctorsReport(
            RunIdentity of, String title, String view, List<Finding> findings, Optional<Treatment> treatment) {
        /** Files of {@link #write}, the page first. */
        static final List<String> FILES = List.of("report.html", "report.json");

        /** Returns whether something is broken or critical. */
        boolean needsAttention() {
            return findings.stream().anyMatch(finding -> finding.weight().compareTo(Weight.CRITICAL) <= 0);
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
            lines.add(needsAttention() ? "The run needs attention." : "Nothing is broken or critical.");
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
                    .put("needs_attention", needsAttention());
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
                                            .orElse("nothing is broken or critical"),
                                    needsAttention()
                                            ? Health.ILL
                                            : findings.stream().anyMatch(finding -> finding.weight() == Weight.WARNING)
                                                    ? Health.LOOK
                                                    : Health.OK)
                            .sure("by the doctor's rules over the recorded data"))
                    .with(Section.of("Findings")
                            .with(Table.of(
                                    "",
                                    List.of(
                                            Column.text("weight", DoctorsReport::label),
                                            Column.text("about", Finding::subject),
                                            Column.text("finding", Finding::sentence),
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
}
