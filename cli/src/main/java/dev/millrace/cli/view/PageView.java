package dev.millrace.cli.view;

import dev.millrace.runtime.train.RunStatus;
import dev.millrace.runtime.train.RunView;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.ViewServer;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;

/** A run's page beside its terminal view, served by the process that trains; it also has what only that process knows, such as who waits. */
public final class PageView implements RunView {
    private final RunView terminal;
    private final ViewServer server;
    private final ViewedRun run;

    private PageView(RunView terminal, ViewServer server, ViewedRun run) {
        this.terminal = terminal;
        this.server = server;
        this.run = run;
    }

    /**
     * Opens the page of the run that goes on in a folder of this process, and says where it is.
     *
     * @param terminal shown beside it, and closed with it
     */
    public static RunView open(int port, Path folder, RunView terminal, PrintWriter out) {
        ViewServer server;
        try {
            RunSource source = new RunSource.Here(folder);
            ViewedRuns runs =
                    new ViewedRuns(List.of(source), folder.toAbsolutePath().getParent(), ViewOptions.indexes(null));
            server = ViewServer.open(port, runs, ViewOptions.shelf(List.of()));
            out.println("view at " + server.address() + "#/" + source.name() + "/now");
            out.flush();
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
        run.show(status);
        terminal.show(status);
    }

    @Override
    public void close() {
        server.close();
        terminal.close();
    }
}
