package dev.millrace.runtime.train;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.log.EvaluationLog;
import dev.millrace.log.LogConnection;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.EndModels;
import dev.millrace.runtime.pipeline.RoleFailedException;
import dev.millrace.runtime.pipeline.StopRequest;
import dev.millrace.runtime.report.RunSummary;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.stages.IdleStages;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What a run that has ended says of itself: read from the log, written into its folder, and printed. */
final class EndReport {
    private static final Duration LEDGER_PATIENCE = Duration.ofSeconds(30);

    private final MillraceConfig config;
    private final LogConnection connection;
    private final RunDirectory directory;
    private final @Nullable Path summaryCopy;
    private final long startedAtMs;
    private final ElapsedTime elapsed;
    private final PrintWriter out;
    private final PrintWriter err;

    /** @param startedAtMs steps that ended later are new */
    EndReport(
            MillraceConfig config,
            LogConnection connection,
            RunDirectory directory,
            @Nullable Path summaryCopy,
            long startedAtMs,
            ElapsedTime elapsed,
            PrintWriter out,
            PrintWriter err) {
        this.config = config;
        this.connection = connection;
        this.directory = directory;
        this.summaryCopy = summaryCopy;
        this.startedAtMs = startedAtMs;
        this.elapsed = elapsed;
        this.out = out;
        this.err = err;
    }

    /**
     * Of a run that ended well.
     *
     * @param idle what part of the time each role had nothing to do
     * @param stop once it is made, models are no longer written
     */
    RunSummary ended(RunEnd end, Map<String, Double> idle, StopRequest stop) {
        RunSummary summary = summary(idle, end.reason(), end == RunEnd.GOAL_REACHED);
        if (config.goal().exportModels()) {
            exportModels(summary, stop);
        }
        if (summary.newSteps() == 0 && end != RunEnd.INTERRUPTED && end != RunEnd.TIME_OVER) {
            say("there was nothing left to do: "
                    + (end == RunEnd.LAST_STEP
                            ? "learner.max_steps is " + config.learner().maxSteps() + "; a larger --max-steps goes on"
                            : "goal.mean_reward is " + config.goal().meanReward()
                                    + "; --set goal.mean_reward=... with a larger one goes on"));
        }
        return summary;
    }

    /** What can be told of a run that failed; that it cannot be told must not hide why it failed. */
    void failed(RoleFailedException failure, Map<String, Double> idle) {
        try {
            summary(idle, "a role failed", false);
        } catch (RuntimeException e) {
            failure.addSuppressed(e);
            err.println("there is no summary: " + e.getMessage());
        }
    }

    /** The run has ended well by now, and a model that cannot be written does not change that. */
    private void exportModels(RunSummary summary, StopRequest stop) {
        EndModels models = new EndModels(connection, config, directory.models());
        Map<String, Long> versions = new LinkedHashMap<>();
        versions.put("last", summary.policyVersion());
        versions.put("best", summary.bestVersion());
        versions.forEach((name, version) -> {
            String later = "; millrace model export --run-dir " + directory.path() + " --version " + version
                    + " --to DIR writes it";
            if (stop.isMade()) {
                say("  the " + name + " model is not written, since the run was to stop" + later);
                return;
            }
            try {
                say("  " + models.write(name, version));
            } catch (RefusedRequestException e) {
                err.println("the " + name + " model is not written: " + e.getMessage() + later);
                err.flush();
            }
        });
    }

    private RunSummary summary(Map<String, Double> idle, String stoppedBecause, boolean goalReached) {
        Account account = new LedgerReader(connection).read(LEDGER_PATIENCE);
        List<StepRow> steps = account.steps().stream().map(StepRow::of).toList();
        IdleStages stages = new IdleStages(IdleStages.STEPS);
        account.steps().forEach(stages::add);
        double[] secondsOfNew = steps.stream()
                .filter(step -> step.finishedAtMs() >= startedAtMs)
                .mapToDouble(step -> (step.finishedAtMs() - startedAtMs) / 1e3)
                .toArray();
        RunSummary summary = new RunSummary(
                config.run().id(),
                steps,
                stages.idle(),
                secondsOfNew.length,
                secondsOfNew.length == 0 ? Double.NaN : secondsOfNew[0],
                elapsed.seconds(),
                new RunSummary.Tokens(account.generatedTokens(), account.scoredTokens(), account.trainedTokens()),
                account.balance(),
                idle,
                EvaluationLog.read(connection, LEDGER_PATIENCE),
                connection.alarms().standing(),
                goalReached,
                stoppedBecause);
        RunResults results = new RunResults(directory);
        results.write(summary, err);
        out.println("the run stopped because " + stoppedBecause);
        RunResults.print(summary, out);
        say("  all of it is in " + directory.path() + ": config.yaml, summary.json, steps.csv, run.png");
        if (!goalReached && config.learner().maxSteps() != summary.steps().size()) {
            say("  millrace train --run-dir " + directory.path() + " goes on from here");
        }
        if (summaryCopy != null) {
            results.writeCopy(summary, summaryCopy);
        }
        return summary;
    }

    private void say(String line) {
        out.println(line);
        out.flush();
    }
}
