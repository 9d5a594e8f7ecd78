package dev.millrace.view.follow;

import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.train.RunDirectory;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/**
 * Starts the broker of a run that has ended for one question that a log alone answers, and ends it with the question, or as soon as somebody wants the
 * run to go on. Thread-safe; questions wait for each other.
 */
final class LentLog {
    private static final long LOOK_MS = 100;

    private final RunSource source;

    LentLog(RunSource source) {
        this.source = source;
    }

    /**
     * The answer.
     *
     * @param folder of the run
     * @throws RefusedRequestException if the run is to go on before the question is answered
     */
    synchronized <T> T ask(Path folder, Function<OpenRun, T> question) throws InterruptedException {
        Asked<T> asked = new Asked<>(question);
        FutureTask<T> answer = new FutureTask<>(asked);
        Thread thread = new Thread(answer, "view-question-" + source.name());
        thread.setDaemon(true);
        thread.start();
        while (true) {
            try {
                return answer.get(LOOK_MS, TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                if (RunDirectory.isWanted(folder)) {
                    asked.stepAside();
                }
            } catch (ExecutionException e) {
                if (asked.isOver) {
                    throw new RefusedRequestException("run " + source.name()
                            + " is wanted by another command, which goes first; ask again when it is done");
                }
                throw e.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(e.getCause());
            } catch (InterruptedException e) {
                asked.stepAside();
                throw e;
            }
        }
    }

    /** A question on a thread of its own, which is interrupted while it reads, and at no other time: a broker starts and ends in peace. */
    private final class Asked<T> implements Callable<T> {
        private final Function<OpenRun, T> question;
        private Thread reader = Thread.currentThread();
        private boolean isReading;
        private volatile boolean isOver;

        Asked(Function<OpenRun, T> question) {
            this.question = question;
        }

        synchronized void stepAside() {
            isOver = true;
            if (isReading) {
                reader.interrupt();
            }
        }

        private synchronized void begin() {
            if (isOver) {
                throw new RefusedRequestException("the run is wanted");
            }
            reader = Thread.currentThread();
            isReading = true;
        }

        private synchronized void end() {
            isReading = false;
            Thread.interrupted(); // the broker's end is waited for
        }

        @Override
        public T call() {
            OpenRun run = source.openLog();
            try {
                begin();
                return question.apply(run);
            } finally {
                end();
                run.close();
            }
        }
    }
}
