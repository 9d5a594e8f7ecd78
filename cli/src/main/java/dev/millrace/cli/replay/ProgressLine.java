package dev.millrace.cli.replay;

import java.io.PrintWriter;
import java.util.Locale;
import java.util.function.LongSupplier;

/** Progress of a long job with the remaining time; silent if the output is not a terminal. */
public final class ProgressLine {
    private static final long PERIOD_MS = 300;

    private final String what;
    private final LongSupplier passed;
    private final long toPass;
    private final PrintWriter out;
    private final long startNanos = System.nanoTime();
    private final Thread thread = new Thread(this::show, "progress");
    private int width;

    private ProgressLine(String what, LongSupplier passed, long toPass, PrintWriter out) {
        this.what = what;
        this.passed = passed;
        this.toPass = toPass;
        this.out = out;
    }

    /** A long job. */
    public interface Job<T, E extends Exception> {
        T run() throws E;
    }

    /**
     * Runs a job and shows a progress line.
     *
     * @param passed progress; called from another thread
     * @param toPass in all
     */
    @SuppressWarnings("SystemConsoleNull") // only needed in some JDKs; others print some lines on stderr
    public static <T, E extends Exception> T during(
            String what, LongSupplier passed, long toPass, PrintWriter out, Job<T, E> job) throws E {
        ProgressLine line = new ProgressLine(what, passed, toPass, out);
        if (System.console() != null && toPass > 0) {
            line.thread.setDaemon(true);
            line.thread.start();
        }
        try {
            return job.run();
        } finally {
            line.end();
        }
    }

    private void show() {
        try {
            while (true) {
                Thread.sleep(PERIOD_MS);
                String text = text(what, passed.getAsLong(), toPass, (System.nanoTime() - startNanos) / 1e9);
                out.print("\r" + text + " ".repeat(Math.max(0, width - text.length())));
                out.flush();
                width = text.length();
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    static String text(String what, long passed, long toPass, double seconds) {
        double share = Math.min(1, (double) passed / toPass);
        String left = share <= 0
                ? ""
                : String.format(Locale.ROOT, ", %s left", clock((long) Math.ceil(seconds * (1 - share) / share)));
        return String.format(
                Locale.ROOT, "%s  %3.0f %%  %,d of %,d records%s", what, 100 * share, passed, toPass, left);
    }

    private static String clock(long seconds) {
        return seconds < 3600
                ? String.format(Locale.ROOT, "%d:%02d", seconds / 60, seconds % 60)
                : String.format(Locale.ROOT, "%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }

    private void end() {
        if (thread.isAlive()) {
            thread.interrupt();
            try {
                thread.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            out.print("\r" + " ".repeat(width) + "\r");
            out.flush();
        }
    }
}
