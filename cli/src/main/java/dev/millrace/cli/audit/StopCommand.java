package dev.millrace.cli.audit;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.log.run.ClusterRuns;
import dev.millrace.log.run.ClusterRuns.ClusterRun;
import dev.millrace.log.run.RoleRights;
import dev.millrace.report.Lines;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.ModelSizes;
import dev.millrace.runtime.config.RecordedConfiguration;
import dev.millrace.runtime.pipeline.RunLookup;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.follow.RunSource;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code millrace stop}: stops a run's processes in order and waits for them. */
@Command(
        name = "stop",
        description = "Stops the processes of a run in order, as Ctrl-C does, and waits until they have ended. In a "
                + "folder it sends SIGTERM to the process that trains there. On a cluster it writes a request on the "
                + "topic of the run's claim, which every Millrace role follows, and waits until none is seen: no group "
                + "has members, no transaction is open and the newest record is older than 30 s. Generators and "
                + "trainers in other languages do not follow it.",
        footer = {
            "",
            "millrace stop --run-dir runs/<run id>",
            "millrace stop --bootstrap-servers kafka:9092 --run my-run",
            "",
            "Exit codes: 0 it has stopped; 5 there is nothing to stop; 1 a failure, or a process is left; 2 a mistake in the",
            "command line."
        })
public final class StopCommand extends ScreenCommand {
    /** Time after the roles' end: for the summary, and until the newest record is old enough. */
    private static final Duration BEYOND_ROLES = Duration.ofSeconds(60);

    private static final long LOOK_MS = 200;
    private static final long LOOK_AT_CLUSTER_MS = 2_000;

    @Mixin
    private RunOptions run;

    @Override
    public Integer call() throws InterruptedException {
        MillraceConfig whereabouts = run.whereabouts();
        return run.folder() != null ? inFolder(run.folder()) : onCluster(whereabouts);
    }

    private int inFolder(Path folder) throws InterruptedException {
        long began = System.nanoTime();
        Duration limit = limit(run.over(ConfigTree.empty()).resolve());
        ProcessHandle process = RunDirectory.stop(folder)
                .orElseThrow(() -> new NotFoundException(
                        "no process trains in " + folder + "; 'millrace runs' lists the runs and their state"));
        paragraph("process " + process.pid() + ", which trains in " + folder + ", was asked to stop");
        if (!await(limit, LOOK_MS, () -> !process.isAlive() && !RunDirectory.isRunning(folder))) {
            throw new RefusedRequestException("process " + process.pid() + " still runs after " + limit.toSeconds()
                    + " s; repeat the command to keep waiting without a second signal, or see "
                    + RunDirectory.log(folder));
        }
        JsonNode summary = new RunSource.Folder(folder)
                .summary()
                .map(StopCommand::parsed)
                .orElseThrow(() -> new RefusedRequestException("process " + process.pid()
                        + " has ended without a summary; " + RunDirectory.log(folder) + " says what failed"));
        paragraph("run " + summary.path("run_id").asText() + " stopped after "
                + Lines.duration(Duration.ofNanos(System.nanoTime() - began).toMillis()) + " at version "
                + summary.path("policy_version").asLong() + ", because "
                + summary.path("stopped_because").asText());
        paragraph(run.goesOn());
        return 0;
    }

    private static JsonNode parsed(String json) {
        try {
            return new ObjectMapper().readTree(json);
        } catch (JsonProcessingException e) {
            throw new RefusedRequestException("the run has ended and its summary cannot be read: " + e.getMessage(), e);
        }
    }

    private static Duration limit(MillraceConfig config) {
        return ModelSizes.stopLimit(config).plus(BEYOND_ROLES);
    }

    private int onCluster(MillraceConfig whereabouts) throws InterruptedException {
        RunTopics topics = whereabouts.run().topics();
        try (ClusterRuns cluster = RunOptions.cluster(whereabouts)) {
            ClusterRun found = DeleteCommand.found(cluster, whereabouts);
            run.require(RoleRights.STOP);
            Optional<RecordedConfiguration> recorded = found.claim().flatMap(RunLookup::configuration);
            Duration limit =
                    limit(run.over(recorded.map(RecordedConfiguration::tree).orElseGet(ConfigTree::empty))
                            .resolve());
            cluster.stop(topics);
            String name = found.claim().map(claim -> claim.run().runId()).orElse(topics.prefix());
            if (found.signs().isEmpty()) {
                paragraph("no role of run " + name + " was seen; the request is on " + topics.run()
                        + " for a learner, admission or evaluator that waits");
                return 0;
            }
            paragraph(
                    "the roles of run " + name + " were asked to stop; seen were: " + String.join("; ", found.signs()));
            if (!await(
                    limit, LOOK_AT_CLUSTER_MS, () -> cluster.at(topics).signs().isEmpty())) {
                List<String> signs = cluster.at(topics).signs();
                throw new RefusedRequestException("after " + limit.toSeconds() + " s run " + name + " is still alive: "
                        + String.join("; ", signs) + "; stop it on its own machine");
            }
            paragraph("no role of run " + name
                    + " is seen any more: no group has members, no transaction is open, no record is younger than "
                    + ClusterRuns.RECENT_SECONDS + " s");
            paragraph(run.goesOn());
            return 0;
        }
    }

    private static boolean await(Duration limit, long periodMs, BooleanSupplier condition) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                return false;
            }
            TimeUnit.MILLISECONDS.sleep(periodMs);
        }
        return true;
    }
}
