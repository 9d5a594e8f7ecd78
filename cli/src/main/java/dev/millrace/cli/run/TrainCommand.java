package dev.millrace.cli.run;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.Logs;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.StopSignals;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.runtime.Millrace;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.RunLookup;
import dev.millrace.runtime.train.ResumeCheck;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.runtime.train.RunView;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.ViewServer;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.net.BindException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace train}: every role in one process, from random weights to a trained policy. */
@Command(
        name = "train",
        description = "Trains a policy with broker, generator, scorer, topology and learner in one process. Without "
                + "options: the task 'inc' from random weights, until its mean reward is 0.9 over ten steps.",
        footer = {
            "",
            "Ctrl-C stops at the last finished step; the same --run-dir continues from there.",
            "",
            "Exit codes: 0 the goal or the last step was reached; 3 the time was over before; 130 Ctrl-C; 1 a failure;",
            "2 a mistake in the configuration."
        })
public final class TrainCommand extends ScreenCommand {
    @Mixin
    private ConfigOptions options;

    @Option(
            names = "--run-dir",
            paramLabel = "DIR",
            description = "Folder of the run (default runs/<run id>); an existing run resumes.")
    private Path runDirectory;

    @Option(
            names = "--model",
            paramLabel = "DIR",
            description = "Hugging Face directory to start from: model.checkpoint.")
    private Path model;

    @Option(
            names = "--data",
            paramLabel = "FILE",
            description = "Prompts as JSON lines, {\"prompt\": TEXT, \"answer\": ...}: data.file, for the task text.")
    private Path data;

    @Option(
            names = "--eval-data",
            paramLabel = "FILE",
            description = "Held-out prompts for evaluation: task.eval.data.file.")
    private Path evalData;

    @Option(
            names = "--reward",
            paramLabel = "KIND",
            description = "Reward: reward.kind, such as exact, numeric or regex.")
    private String reward;

    @Option(names = "--summary", paramLabel = "FILE", description = "Write the summary to this file as well.")
    private Path summary;

    @Option(
            names = "--max-steps",
            paramLabel = "N",
            description = "End after N optimiser steps, counted from the run's beginning.")
    private Long maxSteps;

    @Option(
            names = "--view",
            paramLabel = "PORT",
            arity = "0..1",
            fallbackValue = "8650",
            description = "Serve the run's page on this port, 0 for any free one (default 8650).")
    private Integer view;

    @Option(names = "--plain", description = "Print lines in place of the live view.")
    private boolean plain;

    @Override
    public Integer call() throws Exception {
        if (view != null) {
            ViewOptions.requirePort("--view", view);
        }
        MillraceConfig config = resolved().named();
        Path folder = runDirectory != null
                ? runDirectory
                : Path.of("runs", config.run().id());
        Logs.ofRun(RunDirectory.log(folder));
        Millrace run = new Millrace(config)
                .in(folder)
                .startedAt(ManagementFactory.getRuntimeMXBean().getStartTime())
                .printingTo(out(), err())
                .showing(() -> shown(config.http(), folder));
        if (summary != null) {
            requireWritable(summary.toAbsolutePath());
            run.copyingSummaryTo(summary);
        }
        return StopSignals.during(run::run, run::stop).end().code();
    }

    private RunView shown(HttpConfig http, Path folder) {
        RunView terminal = TerminalView.open(plain, out());
        if (view == null) {
            return terminal;
        }
        try {
            return PageView.open(http, view, folder, terminal, out());
        } catch (RefusedRequestException e) {
            if (e.getCause() != null
                    && e.getCause().getCause() instanceof BindException) { // the view command has the option --port
                throw new RefusedRequestException(
                        "port " + view + " on loopback is taken; give --view another one, or 0 for any free one", e);
            }
            throw e;
        }
    }

    /** The options over the run's recorded configuration, from its folder or else its log. */
    private MillraceConfig resolved() {
        if (runDirectory != null && RunDirectory.holdsRun(runDirectory)) {
            return over(ResumeCheck.in(runDirectory).tree()).resolve();
        }
        ConfigLayers layers = over(ConfigTree.empty());
        MillraceConfig whereabouts = layers.whereabouts();
        if (whereabouts.run().embedded() || whereabouts.run().id().isEmpty()) {
            return layers.resolve();
        }
        return RunLookup.configuration(whereabouts)
                .map(recorded -> over(recorded.tree()).resolve())
                .orElseGet(layers::resolve);
    }

    private ConfigLayers over(ObjectNode begun) {
        ConfigLayers layers = options.over(begun);
        ConfigOptions.set(layers, "model.checkpoint", model);
        ConfigOptions.set(layers, "data.file", data);
        ConfigOptions.set(layers, "task.eval.data.file", evalData);
        ConfigOptions.set(layers, "reward.kind", reward);
        return maxSteps == null ? layers : layers.set("learner.max_steps=" + maxSteps);
    }

    /** Reports problems before the run. */
    private static void requireWritable(Path file) {
        try {
            Files.createDirectories(file.getParent());
            if (Files.isDirectory(file) || !Files.isWritable(Files.exists(file) ? file : file.getParent())) {
                throw new IOException(Files.isDirectory(file) ? "it is a folder" : "permission denied");
            }
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot write the summary to " + file + " (" + RunDirectory.reason(e)
                            + "); give --summary a file that can be written",
                    e);
        }
    }

    /** A run's page served by the training process in addition to the terminal view; it also shows which roles wait. */
    static final class PageView implements RunView {
        private final RunView terminal;
        private final ViewServer server;
        private final ViewedRun run;
        private long steps;
        private boolean isEnded;

        private PageView(RunView terminal, ViewServer server, ViewedRun run) {
            this.terminal = terminal;
            this.server = server;
            this.run = run;
        }

        /**
         * Opens the page of this process's run, and prints its address.
         *
         * @param terminal also shown, and closed with it
         */
        public static RunView open(HttpConfig http, int port, Path folder, RunView terminal, PrintWriter out) {
            ViewServer server;
            try {
                RunSource source = new RunSource.Here(folder);
                ViewedRuns runs =
                        new ViewedRuns(List.of(source), folder.toAbsolutePath().getParent(), ViewOptions.indexes(null));
                server = ViewServer.open(http, port, runs, ViewOptions.shelf(List.of()));
                out.println("view at " + server.address() + "#/" + source.name() + "/now");
                return new PageView(terminal, server, runs.run(source.name()).orElseThrow());
            } catch (RuntimeException e) {
                terminal.close();
                throw e;
            }
        }

        @Override
        public long periodMs() {
            return terminal.periodMs();
        }

        @Override
        public void show(RunStatus status) {
            steps = status.learning().steps();
            run.show(status);
            terminal.show(status);
        }

        @Override
        public void leave() {
            terminal.leave();
        }

        @Override
        public void end(String how, long steps) {
            isEnded = true;
            run.end("ended at step " + steps + ": " + how, steps);
        }

        @Override
        public void close() {
            if (!isEnded) {
                run.end("failed at step " + steps + "; see its terminal", steps);
            }
            server.close();
            terminal.close();
        }
    }
}
