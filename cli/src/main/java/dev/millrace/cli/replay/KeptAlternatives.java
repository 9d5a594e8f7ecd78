package dev.millrace.cli.replay;

import dev.millrace.replay.KeptFiles;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;

/** The files of {@code --keep}, and what a person is told of them, also where a signal ends the replay. */
final class KeptAlternatives implements AutoCloseable {
    private final Path folder;
    private final KeptFiles files;
    private final Thread whenInterrupted;

    private KeptAlternatives(Path folder, KeptFiles files, PrintWriter err) {
        this.folder = folder;
        this.files = files;
        this.whenInterrupted = new Thread(() -> {
            err.println("interrupted: what is in " + folder + " is not whole, and its files end in " + KeptFiles.UNFINISHED + " ("
                + files.steps() + " batches); the next replay with this report begins them anew");
            err.flush();
        }, "kept files");
        Runtime.getRuntime().addShutdownHook(whenInterrupted);
    }

    /** @param names of all alternatives, the run's own first, which is not kept: the run has it */
    static KeptAlternatives begin(Path report, List<String> names, PrintWriter err) {
        Path folder = report.resolve("kept");
        return new KeptAlternatives(folder, new KeptFiles(folder, names.subList(1, names.size())), err);
    }

    KeptFiles files() {
        return files;
    }

    /** All was replayed; says what is where. */
    String finish() {
        files.finish();
        return files.steps() + " batches of each alternative, and their trajectories, are kept in " + folder;
    }

    @Override
    public void close() {
        try {
            Runtime.getRuntime().removeShutdownHook(whenInterrupted);
        } catch (IllegalStateException ending) {
            return; // the hook speaks, and what was written so far stays as it is
        }
        files.close();
    }
}
