package dev.millrace.cli.replay;

import dev.millrace.replay.KeptFiles;
import dev.millrace.runtime.RefusedRequestException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** The files of {@code --keep}, and what a person is told of them, also where a signal ends the replay. */
final class KeptAlternatives implements AutoCloseable {
    private final Path folder;
    private final KeptFiles files;
    private final Thread whenInterrupted;

    private KeptAlternatives(Path folder, KeptFiles files, PrintWriter err) {
        this.folder = folder;
        this.files = files;
        this.whenInterrupted = new Thread(
                () -> {
                    err.println("interrupted: what is in " + folder + " is not whole, and its files end in "
                            + KeptFiles.UNFINISHED + " (" + files.steps()
                            + " batches); the next replay with this report begins them anew");
                    err.flush();
                },
                "kept files");
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

    /** All was replayed; says what is where, and what else is there. */
    String finish() {
        if (isEnding()) {
            throw new RefusedRequestException("interrupted before what is kept in " + folder + " got its names");
        }
        files.finish();
        List<String> others = files.others();
        return "what each alternative makes of "
                + (files.steps() == 1 ? "1 batch" : String.format(Locale.ROOT, "%,d batches", files.steps()))
                + " is kept, with the trajectories, in " + folder
                + (others.isEmpty() ? "" : "; beside it lies what another replay kept: " + String.join(", ", others));
    }

    @Override
    public void close() {
        if (!isEnding()) {
            files.close();
        }
    }

    /** Whether a signal came: then the hook speaks, and what was written so far stays as it is. */
    private boolean isEnding() {
        try {
            Runtime.getRuntime().removeShutdownHook(whenInterrupted);
            return false;
        } catch (IllegalStateException ending) {
            return true;
        }
    }
}
