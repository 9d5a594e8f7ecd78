package dev.millrace.workloads;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import java.util.concurrent.atomic.AtomicLong;

/** What the batches that have become visible say about themselves, added up. Written by one thread, read by any. */
public final class BatchView {
    private static final String STALENESS = "staleness";

    private final AtomicLong count = new AtomicLong();
    private final AtomicLong rollouts = new AtomicLong();
    private volatile double versionsInFlight;
    private volatile double versionsInQueue;

    /** A batch has become visible. */
    public void see(LearnerBatch batch) {
        for (StageReport stage : batch.getStages()) {
            if (stage.getStage().equals(STALENESS)) {
                versionsInFlight = stage.getValues().getOrDefault("in_flight_mean", 0.0);
                versionsInQueue = stage.getValues().getOrDefault("in_queue_mean", 0.0);
            }
        }
        rollouts.addAndGet(batch.getEntries().size());
        count.incrementAndGet();
    }

    public long count() {
        return count.get();
    }

    public long rollouts() {
        return rollouts.get();
    }

    /** Of the newest batch. */
    public double versionsInFlight() {
        return versionsInFlight;
    }

    /** Of the newest batch. */
    public double versionsInQueue() {
        return versionsInQueue;
    }
}
