package dev.millrace.cli.audit;

import dev.millrace.learner.repair.Rollback;
import dev.millrace.learner.repair.RollbackException;
import dev.millrace.log.run.RunLog;
import dev.millrace.report.Lines;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.VersionUnavailableException;
import java.io.PrintWriter;
import java.time.Clock;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace rollback}: a new epoch of a run, which goes on from one of its versions. */
@Command(
        name = "rollback",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Takes a run back to one of its versions: a new epoch begins with that version's weights, optimiser's state and",
            "controls, bit for bit, and goes on from there. Nothing is deleted: the versions after it stay on the log, what was",
            "in flight is superseded. Roles that still run are shut out, and end with a sentence; started again, they go on in",
            "the new epoch. Cut short, it is completed by the same command, or by the learner that starts next."
        },
        footer = {
            "",
            "millrace rollback --to-version 40 --why 'entropy collapsed' --run-dir runs/<run id>",
            "millrace rollback --to-version 40 --bootstrap-servers kafka:9092 --run my-run",
            "",
            "Exit codes: 0 the run is in the new epoch; 1 a failure; 2 a mistake in the command line."
        })
public final class RollbackCommand implements Callable<Integer> {
    @Option(
            names = "--to-version",
            paramLabel = "N",
            required = true,
            description = "Version to go on from; its weights and optimiser's state must still be kept.")
    private long version;

    @Option(
            names = "--why",
            paramLabel = "TEXT",
            defaultValue = "",
            description = "The reason, which is kept with the epoch and told to roles that it ends.")
    private String why;

    @Mixin
    private RunOptions run;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        try (AuditedRun audited = run.openDamaged();
                RunLog log = audited.toWrite()) {
            out.println(audited.title());
            Rollback.Done done = new Rollback(
                            log, audited.config().topics(), audited.config().weights(), Clock.systemUTC())
                    .to(version, why);
            say(
                    out,
                    "epoch " + done.epoch() + (done.isCompletion() ? " is completed: it" : "")
                            + " begins with version " + version + " of epoch "
                            + done.first().getParentEpoch() + ", weights "
                            + done.first().getWeights().getSha256());
            if (done.newestBefore() > version) {
                say(
                        out,
                        "versions " + (version + 1) + " to " + done.newestBefore() + " of epoch " + done.parentEpoch()
                                + " stay on the log, and nothing goes on from them; what was in flight is superseded");
            }
            say(out, run.goesOn());
            out.flush();
            return 0;
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new RefusedRequestException(
                    "the run cannot go back to version " + version + ": " + e.getMessage()
                            + "; give --to-version one whose weights and optimiser's state are kept",
                    e);
        } catch (RollbackException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
    }

    private static void say(PrintWriter out, String text) {
        Lines.wrapped("  ", text).forEach(out::println);
    }
}
