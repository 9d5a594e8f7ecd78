package dev.millrace.experiments;

import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Evaluation;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Does the missing runs of a grid, several at a time. */
public final class GridRunner {
    private final StalenessRuns runs;
    private final RunFiles files;
    private final int parallel;
    private final PrintWriter out;
    private int finished;

    public GridRunner(StalenessRuns runs, RunFiles files, int parallel, PrintWriter out) {
        this.runs = runs;
        this.files = files;
        this.parallel = parallel;
        this.out = out;
    }

    /** @throws IllegalStateException if a run fails for another reason than non-finite numbers */
    public void run(Grid grid) throws IOException, InterruptedException {
        List<RunKey> left = new ArrayList<>();
        for (RunKey key : grid.runs()) {
            if (files.read(key).isEmpty()) {
                left.add(key);
            }
        }
        out.println(grid.runs().size() + " runs of " + grid.settings().steps() + " steps, "
                + (grid.runs().size() - left.size()) + " of them done already");
        out.flush();
        long start = System.nanoTime();
        ExecutorService threads = Executors.newFixedThreadPool(parallel);
        try {
            List<Future<?>> futures = new ArrayList<>();
            for (RunKey key : left) {
                futures.add(threads.submit(() -> {
                    long begin = System.nanoTime();
                    GridRunResult result = runs.run(key);
                    files.write(result);
                    report(result, left.size(), (System.nanoTime() - begin) / 1e9, (System.nanoTime() - start) / 1e9);
                    return null;
                }));
            }
            for (Future<?> future : futures) {
                future.get();
            }
        } catch (ExecutionException e) {
            if (e.getCause() instanceof IOException cause) {
                throw cause;
            }
            throw new IllegalStateException(
                    "a run failed: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    e.getCause());
        } finally {
            threads.shutdownNow();
        }
    }

    private synchronized void report(GridRunResult result, int of, double seconds, double sinceStart) {
        finished++;
        Evaluation last = result.evaluations().get(result.evaluations().size() - 1);
        out.println(String.format(
                Locale.ROOT,
                "%3d/%d  %-32s reward %.3f after %d steps  %.1f s, %.0f min left%s",
                finished,
                of,
                result.key().name(),
                last.reward(),
                last.step(),
                seconds,
                (of - finished) * sinceStart / finished / 60,
                result.refused() == null ? "" : "  refused: " + result.refused()));
        out.flush();
    }
}
