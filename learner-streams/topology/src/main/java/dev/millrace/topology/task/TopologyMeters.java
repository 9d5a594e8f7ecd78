package dev.millrace.topology.task;

import dev.millrace.log.Alarms;
import dev.millrace.schemas.rollout.RefusalReason;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The topology's meters, and the alarm {@value #FAILED} of its batches; shared by all its tasks, thread-safe.
 *
 * <p>They count what was decided, including decisions of a transaction that is aborted and taken again after a
 * crash; what counts exactly is the topics.
 */
public final class TopologyMeters {
    private static final String FAILED = "batch-failed";
    private static final String SUBJECT = "assemble";

    private final Alarms alarms;
    private final Counter joined;
    private final Counter batches;
    private final Counter baselinesForgotten;
    private final Map<OutcomeReason, Counter> outcomes = new EnumMap<>(OutcomeReason.class);
    private final Map<RefusalReason, Counter> deadLetters = new EnumMap<>(RefusalReason.class);
    private final AtomicLong pendingRollouts = new AtomicLong();
    private final WaitBoard waits = new WaitBoard();

    /** With alarms that nobody sees. */
    public TopologyMeters(MeterRegistry registry) {
        this(registry, new Alarms());
    }

    public TopologyMeters(MeterRegistry registry, Alarms alarms) {
        this.alarms = alarms;
        joined = Counter.builder("millrace.topology.joined")
                .description("Rollouts joined with their score")
                .register(registry);
        batches = Counter.builder("millrace.topology.batches")
                .description("Batches handed to the learner")
                .register(registry);
        baselinesForgotten = Counter.builder("millrace.topology.baselines.forgotten")
                .description("Baselines of prompts or tasks evicted for newer ones")
                .register(registry);
        for (OutcomeReason reason : OutcomeReason.values()) {
            outcomes.put(
                    reason,
                    Counter.builder("millrace.topology.outcomes")
                            .tag("reason", reason.code())
                            .description("Rollouts and scores dropped before a batch")
                            .register(registry));
        }
        for (RefusalReason reason : RefusalReason.values()) {
            deadLetters.put(
                    reason,
                    Counter.builder("millrace.topology.dead.letters")
                            .tag("reason", reason.code())
                            .description("Records that were refused")
                            .register(registry));
        }
        Gauge.builder("millrace.pending.rollouts", pendingRollouts, AtomicLong::doubleValue)
                .description("Rollouts that wait for their score")
                .register(registry);
    }

    /** What the tasks wait for. */
    public WaitBoard waits() {
        return waits;
    }

    public void joined() {
        joined.increment();
    }

    public void batch() {
        batches.increment();
        alarms.lower(FAILED, SUBJECT);
    }

    /** Counts keys that left an advantage's memory. */
    public void baselinesForgotten(int keys) {
        baselinesForgotten.increment(keys);
    }

    /** A batch was given up, for a reason that later ones may share. */
    public void batchFailed(String why) {
        alarms.raise(
                FAILED,
                SUBJECT,
                why + "; its rollouts are dropped as " + OutcomeReason.STAGE_FAILED.code(),
                "it clears with the next batch that passes; if none comes, change that stage's settings under"
                        + " algorithm and restart");
    }

    public void outcome(OutcomeReason reason) {
        Objects.requireNonNull(outcomes.get(reason), reason::code).increment();
    }

    public void deadLetter(RefusalReason reason) {
        Objects.requireNonNull(deadLetters.get(reason), reason::code).increment();
    }

    /** One task holds {@code change} more rollouts, or fewer, that wait for their score. */
    public void pendingRollouts(long change) {
        pendingRollouts.addAndGet(change);
    }
}
