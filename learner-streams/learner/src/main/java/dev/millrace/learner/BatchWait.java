package dev.millrace.learner;

import dev.millrace.learner.batch.BatchReader;
import dev.millrace.learner.batch.IncomingBatch;
import dev.millrace.log.LogConnection;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Waits for the batch that is due, and looks now and then whether it can still come. Where the log has lost it, an alarm names the way
 * out. Used by the learner's thread.
 */
final class BatchWait {
    /** So long nothing comes before it is asked whether the log has gone another way. */
    static final long LOOK_AROUND_NANOS = 2_000_000_000L;

    private static final Logger LOG = LoggerFactory.getLogger(BatchWait.class);
    private static final Duration WAIT = Duration.ofMillis(500);
    private static final String BATCH_LOST = "batch-lost";
    private static final String BATCH_UNUSABLE = "batch-unusable";
    private static final List<String> ALARMS = List.of(BATCH_LOST, BATCH_UNUSABLE);

    private final LogConnection connection;
    private final long idleReportMs;
    private final ChainWatch chain;
    private final LearnerMeters meters;
    private final StopSignal stop;
    private double idleSeconds;

    /** @param idleReportMs after so long without a batch a line says so, and again after as long */
    BatchWait(LogConnection connection, long idleReportMs, ChainWatch chain, LearnerMeters meters, StopSignal stop) {
        this.connection = connection;
        this.idleReportMs = idleReportMs;
        this.chain = chain;
        this.meters = meters;
        this.stop = stop;
    }

    /** The next batch; empty if the learner was stopped, or must find out again where training stands. */
    Optional<IncomingBatch> next(TrainingState state, RunningLog log) {
        long start = System.nanoTime();
        long reported = start;
        long before = start;
        Optional<IncomingBatch> next = Optional.empty();
        boolean isOver = false;
        while (next.isEmpty() && !stop.isStopped() && !isOver) {
            if (!chain.answerForeign(state, log)) {
                return Optional.empty();
            }
            next = log.reader().poll(WAIT);
            long now = System.nanoTime();
            meters.idle((now - before) / 1e9);
            meters.progress();
            isOver = next.isEmpty()
                    && now - start > LOOK_AROUND_NANOS
                    && (isOvertaken(log.reader()) || chain.isMissing(state, log, 0));
            before = now;
            if (next.isEmpty() && now - start > connection.patience().toNanos()) {
                reportMissing(log.reader(), (now - start) / 1_000_000_000);
            }
            if (next.isEmpty() && now - reported > idleReportMs * 1_000_000) {
                LOG.info(
                        "has waited {} s for batch {}; the newest version is {}",
                        (now - start) / 1_000_000_000,
                        log.reader().due(),
                        state.newest().getVersion());
                reported = now;
            }
        }
        idleSeconds = (before - start) / 1e9;
        return next;
    }

    /** How long the last batch was waited for. */
    double idleSeconds() {
        return idleSeconds;
    }

    private static boolean isOvertaken(BatchReader reader) {
        boolean isOvertaken = reader.isOvertaken();
        if (isOvertaken) {
            LOG.info("batches from {} on were consumed by somebody else; begins again", reader.due());
        }
        return isOvertaken;
    }

    private void reportMissing(BatchReader reader, long seconds) {
        if (!reader.ahead().isEmpty() || reader.isDueAgain()) {
            String sentence = "batch " + reader.due() + " is not on the log and has not come for " + seconds + " s"
                    + (reader.ahead().isEmpty()
                            ? "; its version was lost, and is to be learnt again"
                            : "; batches " + reader.ahead() + " wait for it");
            connection
                    .alarms()
                    .raise(BATCH_LOST, connection.topics().batches(), sentence, connection.command("repair"));
        }
    }

    /** The batch that came cannot be trained on; another record of it is waited for. */
    void unusable(RuntimeException why) {
        connection
                .alarms()
                .raise(
                        BATCH_UNUSABLE,
                        connection.topics().batches(),
                        String.valueOf(why.getMessage()),
                        connection.command("repair"));
    }

    /** The batch that was waited for was trained on, or which one is due is found out again. */
    void over() {
        String topic = connection.topics().batches();
        ALARMS.forEach(alarm -> connection.alarms().lower(alarm, topic));
    }
}
