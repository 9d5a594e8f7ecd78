package dev.millrace.topology.meters;

import dev.millrace.schemas.refusal.RefusalReason;
import dev.millrace.topology.outcome.OutcomeReason;
import dev.millrace.topology.watch.WaitBoard;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The topology's meters; shared by all its tasks, thread-safe.
 *
 * <p>They count what was decided, including decisions of a transaction that is aborted and taken again after a
 * crash; what counts exactly is the topics.
 */
public final class TopologyMeters {
    private final Counter joined;
    private final Counter batches;
    private final Map<OutcomeReason, Counter> outcomes = new EnumMap<>(OutcomeReason.class);
    private final Map<RefusalReason, Counter> deadLetters = new EnumMap<>(RefusalReason.class);
    private final AtomicLong pendingRollouts = new AtomicLong();
    private final WaitBoard waits = new WaitBoard();

    public TopologyMeters(MeterRegistry registry) {
        joined = Counter.builder("millrace.topology.joined")
                .description("Rollouts that met their score")
                .register(registry);
        batches = Counter.builder("millrace.topology.batches")
                .description("Batches handed to the learner")
                .register(registry);
        for (OutcomeReason reason : OutcomeReason.values()) {
            outcomes.put(
                    reason,
                    Counter.builder("millrace.topology.outcomes")
                            .tag("reason", reason.code())
                            .description("Rollouts and scores that left without reaching a batch")
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
