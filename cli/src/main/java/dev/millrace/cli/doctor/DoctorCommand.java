package dev.millrace.cli.doctor;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.doctor.Doctor;
import dev.millrace.audit.doctor.Examination;
import dev.millrace.audit.doctor.ExaminationReader;
import dev.millrace.audit.doctor.Finding;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.log.LogConnection;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.report.Lines;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.audit.AuditedRun;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.live.ConsumerLag;
import dev.millrace.schemas.run.RunIdentity;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
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

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        if (archive == null) {
            return ofRun();
        }
        if (run.isGiven()) {
            throw new ConfigException(
                    "--archive says which run; leave out --run-dir, --run and --bootstrap-servers, or --archive");
        }
        try (ArchivedRun archived = new ArchivedRun(archive)) {
            ArchiveExamination examined = ArchiveExamination.of(archived, run.file());
            return tell(
                    "run " + archived.run().runId() + ", " + examined.steps() + " steps",
                    archived.run(),
                    examined.findings());
        }
    }

    private int ofRun() throws InterruptedException {
        try (AuditedRun audited = run.open()) {
            Examination examination = new ExaminationReader(audited.connection(), PATIENCE, Clock.systemUTC())
                    .read(lags(audited.connection()), run.alarms());
            return tell(
                    audited.title() + ", " + examination.steps().size() + " steps",
                    audited.connection().run(),
                    new Doctor().findings(examination));
        }
    }

    private int tell(String title, RunIdentity of, List<Finding> findings) {
        PrintWriter out = spec.commandLine().getOut();
        boolean ill = findings.stream().anyMatch(finding -> finding.weight().compareTo(Finding.Weight.SICK) <= 0);
        if (json) {
            ObjectNode tree = new ObjectMapper()
                    .createObjectNode()
                    .put("run_id", of.runId())
                    .put("epoch", of.epoch())
                    .put("ill", ill);
            var array = tree.putArray("findings");
            findings.forEach(finding -> array.addObject()
                    .put("weight", finding.weight().name().toLowerCase(Locale.ROOT))
                    .put("subject", finding.subject())
                    .put("sentence", finding.sentence())
                    .put("advice", finding.advice()));
            out.println(tree.toPrettyString());
        } else {
            out.println(title);
            findings.forEach(finding -> print(finding, out));
            out.println();
            out.println(ill ? "The run needs attention." : "Nothing is broken or sick.");
        }
        out.flush();
        return ill ? ILL : 0;
    }

    private static void print(Finding finding, PrintWriter out) {
        out.println();
        Lines.labelled(finding.weight().name().toLowerCase(Locale.ROOT), finding.subject() + ": " + finding.sentence())
                .forEach(out::println);
        if (!finding.advice().isEmpty()) {
            Lines.labelled("", "-> " + finding.advice()).forEach(out::println);
        }
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
