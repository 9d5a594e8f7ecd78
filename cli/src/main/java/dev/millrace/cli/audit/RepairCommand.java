package dev.millrace.cli.audit;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.learner.repair.Examined;
import dev.millrace.learner.repair.Inconsistency;
import dev.millrace.learner.repair.Repair;
import dev.millrace.learner.repair.RepairException;
import dev.millrace.learner.repair.Rollback;
import dev.millrace.learner.repair.RollbackException;
import dev.millrace.learner.repair.RunExaminer;
import dev.millrace.learner.repair.Way;
import dev.millrace.learner.repair.Way.Kind;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.report.AuditedRun;
import java.time.Clock;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace repair}: lists inconsistencies of a run's log with repairs and their costs, and applies one. */
@Command(
        name = "repair",
        description = "Reports inconsistencies of a run's log and the repairs, with their cost in"
                + " trajectory-seconds: the time to resample what would be lost. Compares claim and cluster, "
                + "versions and training log, batches, committed offsets and topics, and finds open "
                + "transactions. Writes nothing without --do.",
        footer = {
            "",
            "millrace repair --run-dir runs/<run id>",
            "millrace repair --do skip-batch --bootstrap-servers kafka:9092 --run my-run",
            "",
            "Exit codes: 0 nothing is inconsistent, or it was repaired; 4 something is; 1 a failure; 2 a mistake in the command",
            "line."
        })
public final class RepairCommand extends ScreenCommand {
    /** Exit status if something is inconsistent. */
    public static final int INCONSISTENT = 4;

    /** Longer than any role's transaction, so that aborting one never waits for an active one. */
    private static final Duration OPEN_FOR = Duration.ofSeconds(10);

    @Option(
            names = "--do",
            paramLabel = "WAY",
            description = "Repair: wait (does nothing), skip-batch, move-offset, abort-transaction or new-epoch. "
                    + "Refused if not offered.")
    private @Nullable String way;

    @Mixin
    private RunOptions run;

    @Override
    public Integer call() {
        if (way != null) {
            run.require(RoleRights.REPAIR);
        }
        try (AuditedRun audited = run.openDamaged()) {
            out().println(audited.title());
            Examined examined = new RunExaminer(
                            audited.connection(),
                            audited.claim(),
                            audited.config().topics(),
                            audited.config().weights(),
                            RunOptions.PATIENCE)
                    .examine(Kind.ABORT_TRANSACTION.word().equals(way) ? Duration.ZERO : OPEN_FOR);
            if (examined.inconsistencies().isEmpty()) {
                paragraph("The log is consistent; nothing to repair.");
                return 0;
            }
            if (way == null) {
                examined.inconsistencies().forEach(found -> tell(found));
                return INCONSISTENT;
            }
            act(audited, examined, chosen(examined, way));
            return 0;
        } catch (RepairException | RollbackException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
    }

    private static Kind chosen(Examined examined, String word) {
        Kind kind = Arrays.stream(Kind.values())
                .filter(each -> each.word().equals(word))
                .findFirst()
                .orElseThrow(() -> new RefusedRequestException("--do " + word + " is not a repair; expected one of "
                        + Arrays.stream(Kind.values()).map(Kind::word).collect(Collectors.joining(", "))));
        if (!examined.offers(kind)) {
            throw new RefusedRequestException("--do " + word + " fixes none of the findings; offered: "
                    + examined.ways()
                            .map(offered -> offered.kind().word())
                            .distinct()
                            .collect(Collectors.joining(", ")));
        }
        return kind;
    }

    private void tell(Inconsistency found) {
        out().println();
        paragraph(found.name() + ": " + found.sentence());
        for (Way each : found.ways()) {
            paragraph("  ", each.kind().word() + " (" + cost(each.trajectorySeconds()) + "): " + each.does());
            if (!each.command().isEmpty()) {
                out().println("      " + each.command()); // on one line, for copying
            }
        }
        if (found.ways().isEmpty()) {
            paragraph("  ", "no repair is possible on this log");
        }
    }

    private static String cost(OptionalDouble seconds) {
        return seconds.isEmpty()
                ? "cost unknown"
                : String.format(Locale.ROOT, "costs %,.1f trajectory-seconds", seconds.getAsDouble());
    }

    private void act(AuditedRun audited, Examined examined, Kind kind) {
        Repair repair =
                new Repair(audited.connection(), audited.config().weights(), RunOptions.PATIENCE, Clock.systemUTC());
        switch (kind) {
            case WAIT -> paragraph("  ", "nothing changed");
            case SKIP_BATCH -> {
                int rollouts = repair.skipBatches(examined);
                paragraph(
                        "  ",
                        "skipped " + examined.lostBatches().size() + " batches, "
                                + examined.lostBatches() + "; " + rollouts
                                + " of their rollouts were dropped as batch-lost, and as many are released again");
            }
            case MOVE_OFFSET -> paragraph("  ", repair.moveOffsets(examined) + " committed offsets were moved");
            case ABORT_TRANSACTION ->
                paragraph("  ", repair.abortTransactions(examined) + " open transactions were aborted");
            case NEW_EPOCH -> {
                long version = examined.goodVersion().orElseThrow();
                String why = examined.inconsistencies().stream()
                        .map(Inconsistency::name)
                        .distinct()
                        .collect(Collectors.joining(", "));
                try (RunLog log = audited.toWrite()) {
                    Rollback.Done done = new Rollback(
                                    log,
                                    audited.config().topics(),
                                    audited.config().weights(),
                                    Clock.systemUTC())
                            .to(version, why);
                    paragraph("  ", "epoch " + done.epoch() + " begins with version " + version);
                }
            }
        }
        paragraph("  ", run.goesOn());
    }
}
