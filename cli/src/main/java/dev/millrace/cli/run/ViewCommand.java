package dev.millrace.cli.run;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.StopSignals;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.ViewServer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace view}: serves a page over live, ended and archived runs. */
@Command(
        name = "view",
        description = "Serves a page about a run on loopback: learning, staleness, corrections. Works during and "
                + "after the run, after a kill, and on an archive. Without options: the runs under runs/. Reads "
                + "committed records only, without a consumer group. Indexes in the background, in the user's "
                + "cache.",
        footer = {
            "",
            "millrace view",
            "millrace view --run-dir runs/<run id>",
            "millrace view --archive my-run.archive",
            "millrace view --bootstrap-servers kafka:9092 --run my-run --port 0",
            "",
            "Exit codes: 0 or 130 it was ended; 1 a failure; 2 a mistake in the command line."
        })
public final class ViewCommand extends ScreenCommand {
    @Mixin
    private RunOptions run;

    @Option(names = "--archive", paramLabel = "DIR", description = "Archive of 'millrace export'; may be given often.")
    private List<Path> archives = new ArrayList<>();

    @Option(
            names = "--runs",
            paramLabel = "DIR",
            defaultValue = "runs",
            description = "Folder of other runs to list and compare (default ${DEFAULT-VALUE}).")
    private Path runs;

    @Mixin
    private ViewOptions view;

    @Override
    public Integer call() throws Exception {
        HttpConfig http = run.http();
        List<RunSource> named = named();
        if (named.isEmpty() && !Files.isDirectory(runs)) {
            throw new ConfigException("there is no folder " + runs
                    + " with runs; name one with --runs DIR, or a run with --run-dir, --archive or"
                    + " --bootstrap-servers");
        }
        CountDownLatch ended = new CountDownLatch(1);
        ViewedRuns viewed = new ViewedRuns(named, runs, view.indexes());
        named.stream().findFirst().ifPresent(first -> viewed.run(first.name())); // is read while the port opens
        try (ViewServer server = view.open(http, viewed)) {
            out().println("view at " + server.address()
                    + (named.isEmpty() ? "" : "#/" + named.get(0).name() + "/now") + "; stop it with Ctrl-C");
            StopSignals.during(
                    () -> {
                        ended.await();
                        return 0;
                    },
                    ended::countDown);
        }
        return 0;
    }

    private List<RunSource> named() {
        List<RunSource> named = new ArrayList<>();
        if (run.folder() != null) {
            if (!RunDirectory.holdsRun(run.folder())) {
                throw new ConfigException(run.folder()
                        + " holds no run (it has no config.yaml); give --run-dir a folder such as runs/<run id>");
            }
            named.add(new RunSource.Folder(run.folder()));
        } else if (run.isGiven()) {
            run.open().close(); // reports errors here instead of on the page
            named.add(new RunSource.Cluster(run.name(), run::open, run.asGiven()));
        }
        for (Path archive : archives) {
            if (!ArchivedRun.isIn(archive)) {
                throw new RefusedRequestException(
                        archive + " is not an archive; give --archive a complete folder of 'millrace export'");
            }
            named.add(new RunSource.Archive(archive));
        }
        return named;
    }
}
