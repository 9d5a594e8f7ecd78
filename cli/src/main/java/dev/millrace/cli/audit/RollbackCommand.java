package dev.millrace.cli.audit;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.learner.repair.Rollback;
import dev.millrace.learner.repair.RollbackException;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.VersionUnavailableException;
import java.time.Clock;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace rollback}: starts a new epoch of a run from one of its versions. */
@Command(
        name = "rollback",
        description = "Rolls a run back to a version: a new epoch starts with that version's weights, optimizer "
                + "state and controls, bit for bit. Deletes nothing; later versions stay on the log, rollouts "
                + "in flight are superseded. Fences running roles; restarted, they join the new epoch. The same "
                + "command, or the next learner, completes an interrupted rollback.",
        footer = {
            "",
            "millrace rollback --to-version 40 --why 'entropy collapsed' --run-dir runs/<run id>",
            "millrace rollback --to-version 40 --bootstrap-servers kafka:9092 --run my-run",
            "",
            "Exit codes: 0 the run is in the new epoch; 1 a failure; 2 a mistake in the command line."
        })
public final class RollbackCommand extends ScreenCommand {
    @Option(
            names = "--to-version",
            paramLabel = "N",
            required = true,
            description = "Version to return to; its weights and optimizer state must still be kept.")
    private long version;

    @Option(
            names = "--why",
            paramLabel = "TEXT",
            defaultValue = "",
            description = "Reason, kept with the epoch and shown to fenced roles.")
    private String why;

    @Mixin
    private RunOptions run;

    @Override
    public Integer call() {
        run.require(RoleRights.ROLLBACK);
        try (AuditedRun audited = run.openDamaged();
                RunLog log = audited.toWrite()) {
            out().println(audited.title());
            Rollback.Done done = new Rollback(
                            log, audited.config().topics(), audited.config().weights(), Clock.systemUTC())
                    .to(version, why);
            paragraph(
                    "  ",
                    "epoch " + done.epoch() + (done.isCompletion() ? " is completed: it" : "")
                            + " begins with version " + version + " of epoch "
                            + done.first().getParentEpoch() + ", weights "
                            + done.first().getWeights().getSha256());
            if (done.newestBefore() > version) {
                paragraph(
                        "  ",
                        "versions " + (version + 1) + " to " + done.newestBefore() + " of epoch " + done.parentEpoch()
                                + " stay on the log without successors; rollouts in flight are superseded");
            }
            paragraph("  ", run.goesOn());
            return 0;
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new RefusedRequestException(
                    "the run cannot go back to version " + version + ": " + e.getMessage()
                            + "; give --to-version a version whose weights and optimiser's state are kept",
                    e);
        } catch (RollbackException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
    }
}
