package dev.millrace.cli.doctor;

import dev.millrace.audit.doctor.Doctor;
import dev.millrace.audit.doctor.Examination;
import dev.millrace.audit.doctor.ExaminationReader;
import dev.millrace.cli.TypedCommand;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.log.LogConnection;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.retrain.TrialLimit;
import dev.millrace.report.ReportOrigin;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.runtime.report.Treatment;
import dev.millrace.runtime.train.ConsumerLag;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code millrace doctor}: what is wrong with a run, in sentences, most important first. */
@Command(
        name = "doctor",
        subcommands = {MismatchCommand.class, PreflightCommand.class},
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Reads a run's topics and says what is wrong with it, most important first: the ledger, the gap between",
            "sampler and learner, progress, who serves what, what was refused, dropped or masked, and the last steps. After a",
            "rollback it judges the run's valid epoch; the ledger has to add up over all of them.",
            "Where sampler and learner are apart, the smallest fix is a patch of algorithm:, which is put over the run's own and",
            "tried on the last batches; it says what the patch would have done. Nothing of the run is changed.",
            "Of an archive: the gap between sampler and learner, and what follows from it, alone."
        },
        footer = {
            "",
            "millrace doctor --run-dir runs/<run id>",
            "millrace doctor --bootstrap-servers kafka:9092 --run my-run",
            "millrace doctor --archive my-run.archive",
            "millrace doctor mismatch --run-dir runs/<run id>",
            "millrace doctor preflight --config my.yaml",
            "",
            "Exit codes: 0 nothing is broken or sick; 4 something is; 1 a failure; 2 a mistake in the command line."
        })
public final class DoctorCommand implements Callable<Integer> {
    /** Exit status if something is broken or sick. */
    static final int ILL = 4;

    private static final Duration PATIENCE = Duration.ofSeconds(30);

    @Mixin
    private RunOptions run;

    @Option(
            names = "--archive",
            paramLabel = "DIR",
            description = "An archive that 'millrace export' or 'millrace import --records' made, in place of a run.")
    private Path archive;

    @Option(
            names = "--try",
            paramLabel = "BATCHES",
            description =
                    "Try the smallest fix on so many of the last batches at most; 0 tries nothing (default: 256).")
    private int batches = TrialLimit.DEFAULT.batches();

    @Option(
            names = "--try-seconds",
            paramLabel = "SECONDS",
            description = "Begin no further batch of the trial after so long (default: 30).")
    private int seconds = Math.toIntExact(TrialLimit.DEFAULT.time().toSeconds());

    @Option(names = "--report", paramLabel = "DIR", description = "Folder for a page and JSON.")
    private Path report;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException, IOException {
        if (batches < 0 || seconds < 1) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--try must be at least 0 and --try-seconds at least 1: " + batches + " and " + seconds);
        }
        if (archive == null) {
            return ofRun();
        }
        if (run.isGiven()) {
            throw new ConfigException(
                    "--archive says which run; leave out --run-dir, --run and --bootstrap-servers, or --archive");
        }
        try (ArchivedRun archived = new ArchivedRun(archive)) {
            ArchiveExamination examined = ArchiveExamination.of(archived, run.file());
            return tell(new DoctorsReport(
                    archived.run(),
                    "run " + archived.run().runId() + ", " + examined.steps() + " steps",
                    "./millrace view --archive " + archive,
                    examined.findings(),
                    treatment(archived, examined.config(), examined.diagnosis())));
        }
    }

    private int ofRun() throws InterruptedException, IOException {
        try (AuditedRun audited = run.open()) {
            Examination examination = new ExaminationReader(audited.connection(), PATIENCE, Clock.systemUTC())
                    .read(lags(audited.connection()), run.alarms());
            return tell(new DoctorsReport(
                    audited.connection().run(),
                    audited.title() + ", " + examination.steps().size() + " steps",
                    "./millrace view " + run.asGiven(),
                    new Doctor().findings(examination),
                    isTried(examination.offPolicy())
                            ? treatment(
                                    new LiveRun(audited.connection(), audited.recorded()),
                                    audited.config(),
                                    examination.offPolicy())
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
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(found.json().toPrettyString());
        } else {
            found.lines().forEach(out::println);
        }
        if (report != null) {
            found.write(report, ReportOrigin.here(TypedCommand.of(spec), null));
            if (!json) {
                out.println("all of it is in " + report + ": " + String.join(", ", DoctorsReport.FILES));
            }
        }
        out.flush();
        return found.isIll() ? ILL : 0;
    }

    private static Map<String, Long> lags(LogConnection connection) throws InterruptedException {
        Map<String, String> groups = new LinkedHashMap<>();
        for (String role : List.of("generator", "scorer", "topology", "learner")) {
            groups.put(connection.group(role), role);
        }
        try (Admin admin = Admin.create(connection.admin())) {
            return new ConsumerLag(admin, groups).read();
        } catch (ExecutionException | TimeoutException e) {
            throw new RefusedRequestException(
                    "the cluster does not say how far the run's consumer groups are: "
                            + (e.getCause() == null
                                    ? "no answer in time"
                                    : e.getCause().getMessage()),
                    e);
        }
    }
}
