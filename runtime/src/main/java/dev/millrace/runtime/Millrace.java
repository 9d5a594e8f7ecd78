package dev.millrace.runtime;

import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.StopRequest;
import dev.millrace.runtime.train.ResumeCheck;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.runtime.train.RunResult;
import dev.millrace.runtime.train.RunView;
import dev.millrace.runtime.train.TrainRun;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A training run inside the calling program: broker, generator, scorer, topology and learner in this process, like
 * {@code millrace train}.
 *
 * <p>{@link dev.millrace.runtime.config.ConfigLayers} makes the configuration. This object adds the run's folder and where the run
 * shows its progress; by default nowhere.
 *
 * <p>One object is one invocation. {@link #run} blocks until the goal, a limit, {@link #stop} or a failure; only {@code stop} may be
 * called by another thread. The folder of an earlier run continues that run. Folder and log are the same as with the command.
 */
public final class Millrace {
    private final MillraceConfig config;
    private final StopRequest stop = new StopRequest();
    private @Nullable Path folder;
    private @Nullable Path summaryCopy;
    private Supplier<RunView> views = RunView::none;
    private long startedAtMs;
    private PrintWriter out = new PrintWriter(Writer.nullWriter());
    private PrintWriter err = out;

    /**
     * @param config of the run; an empty run id is derived from task and time
     * @throws ConfigException if it asks for roles that do not run in one process
     */
    public Millrace(MillraceConfig config) {
        config.requireTrainable();
        this.config = config;
    }

    /**
     * Keeps the run in this folder, which is new, empty, or that of the run to continue; without it {@code runs/<run
     * id>}.
     */
    public Millrace in(Path runDirectory) {
        folder = runDirectory;
        return this;
    }

    /** Writes the summary to this file as well. */
    public Millrace copyingSummaryTo(Path file) {
        summaryCopy = file;
        return this;
    }

    /**
     * Prints progress lines, and a table at the end.
     *
     * @param err for what could not be done for the run's results
     */
    public Millrace printingTo(PrintWriter out, PrintWriter err) {
        this.out = out;
        this.err = err;
        return this;
    }

    /** Shows the live run; the view is opened after the run's roles have started and closed before they stop. */
    public Millrace showing(Supplier<RunView> view) {
        views = view;
        return this;
    }

    /** Counts the run's time from a moment before {@link #run}, such as the start of the program. */
    public Millrace startedAt(long epochMs) {
        startedAtMs = epochMs;
        return this;
    }

    /**
     * Runs until the goal, a limit, a request to stop or a failure.
     *
     * @return the result; a time limit reached before the goal is not a failure
     * @throws ConfigException if the folder holds a different run
     * @throws RefusedRequestException if the folder cannot be used
     * @throws dev.millrace.runtime.pipeline.StoppedException if the stop was requested during start-up
     * @throws dev.millrace.runtime.pipeline.RoleFailedException if a part of the run failed; it can continue from its
     * folder
     */
    public RunResult run() throws InterruptedException {
        Path folder = this.folder;
        Optional<ResumeCheck> begun = folder != null && RunDirectory.holdsRun(folder)
                ? Optional.of(ResumeCheck.in(folder))
                : Optional.empty();
        MillraceConfig named = config.run().id().isEmpty()
                ? begun.map(check -> config.withRunId(check.runId())).orElseGet(config::named)
                : config;
        begun.ifPresent(check -> check.require(named));
        Path path = folder != null ? folder : Path.of("runs", named.run().id());
        long from = startedAtMs == 0 ? System.currentTimeMillis() : startedAtMs;
        try (RunDirectory directory = RunDirectory.open(path)) {
            directory.writeBrokerAddress(""); // the previous process's file is stale; readers wait for ours
            return new TrainRun(named, directory, stop, new TrainRun.Outputs(summaryCopy, views, out, err), from).run();
        } catch (RuntimeException | InterruptedException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException("the run could not be shut down cleanly", e);
        }
    }

    /** Asks the run to end at its last finished step; returns at once. Thread-safe, before {@link #run} too. */
    public void stop() {
        stop.make();
    }
}
