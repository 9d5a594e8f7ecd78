package dev.millrace.cli.run;

import dev.millrace.gateway.HttpConfig;
import dev.millrace.policy.ort.CacheFolders;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.ReportShelf;
import dev.millrace.view.http.ViewServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Address of the page, and location of its index. */
public final class ViewOptions {
    private static final int MOST = 65_535;

    @Option(
            names = "--port",
            paramLabel = "N",
            defaultValue = "8650",
            description = "Port of the page; 0 for any free one (default ${DEFAULT-VALUE}).")
    private int port;

    @Option(
            names = "--index",
            paramLabel = "DIR",
            description = "Folder for the page's index; may be deleted (default: the user's cache).")
    private Path index;

    @Option(
            names = "--reports",
            paramLabel = "DIR",
            description = "Folder with reports of other commands; may be given often (default: reports and "
                    + "experiments).")
    private List<Path> reports = new ArrayList<>();

    static void requirePort(String option, int port) {
        if (port < 0 || port > MOST) {
            throw new ConfigException(option + " must be from 0 to " + MOST + ": " + port);
        }
    }

    /** Serves the page over runs and closes them. */
    public ViewServer open(HttpConfig http, ViewedRuns runs) {
        requirePort("--port", port);
        return ViewServer.open(http, port, runs, shelf(reports));
    }

    /** @param folders report folders; empty for the defaults */
    static ReportShelf shelf(List<Path> folders) {
        return new ReportShelf(folders.isEmpty() ? List.of(Path.of("reports"), Path.of("experiments")) : folders);
    }

    /** The existing folder of the indexes. */
    public Path indexes() {
        return indexes(index);
    }

    /** @param index given folder; null for one in the user's cache */
    static Path indexes(@Nullable Path index) {
        for (Path root : index != null ? List.of(index) : CacheFolders.roots()) {
            try {
                Files.createDirectories(root);
                if (Files.isWritable(root)) {
                    return root;
                }
            } catch (IOException e) {
                // the next one
            }
        }
        throw new RefusedRequestException(
                "no folder for the page's index can be written; give --index DIR, or make the user's cache writable");
    }
}
