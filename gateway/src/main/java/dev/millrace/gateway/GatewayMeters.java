package dev.millrace.gateway;

import dev.millrace.generator.sampling.RefusedPrompt;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Locale;

/** Meters of a gateway. Thread-safe. */
final class GatewayMeters {
    private final MeterRegistry registry;
    private final Counter turns;
    private final Counter branches;
    private final Counter rollouts;
    private final Counter calls;
    private final Counter engine;
    private final Counter acknowledged;

    GatewayMeters(MeterRegistry registry, SessionTable sessions) {
        this.registry = registry;
        Gauge.builder("millrace.gateway.open.sessions", sessions, SessionTable::openSessions)
                .description("sessions that are open")
                .register(registry);
        Gauge.builder("millrace.gateway.free.samples", sessions, SessionTable::freeSamples)
                .description("samples that were released to this gateway and that no session plays")
                .register(registry);
        this.turns = Counter.builder("millrace.gateway.turns")
                .description("turns that were acknowledged")
                .register(registry);
        this.branches = Counter.builder("millrace.gateway.branches")
                .description("turns that do not continue the newest one of their session")
                .register(registry);
        this.rollouts = Counter.builder("millrace.gateway.rollouts")
                .description("rollouts of sessions that were committed")
                .register(registry);
        this.calls = seconds("call", "seconds of answered calls");
        this.engine = seconds("engine", "seconds of answered calls that the engine took");
        this.acknowledged = seconds("acknowledge", "seconds of answered calls until their records were on the log");
    }

    private Counter seconds(String of, String description) {
        return Counter.builder("millrace.gateway." + of + ".seconds")
                .description(description)
                .register(registry);
    }

    /** @param how opened, completed, overdue, returned, or restored */
    void session(String how) {
        registry.counter("millrace.gateway.sessions", "event", how).increment();
    }

    void turn(boolean isBranch) {
        turns.increment();
        if (isBranch) {
            branches.increment();
        }
    }

    void call(long nanos, long engineNanos, long acknowledgeNanos) {
        calls.increment(nanos / 1e9);
        engine.increment(engineNanos / 1e9);
        acknowledged.increment(acknowledgeNanos / 1e9);
    }

    void refused(RefusedCallException refusal) {
        registry.counter(
                        "millrace.gateway.refused.calls",
                        "reason",
                        refusal.code().toLowerCase(Locale.ROOT))
                .increment();
    }

    void refused(RefusedPrompt prompt) {
        registry.counter(
                        "millrace.generator.refused.prompts",
                        "reason",
                        prompt.reason().code())
                .increment();
    }

    void committed(SessionEnding ending) {
        if (ending.rollout() != null) {
            rollouts.increment(1 + ending.branches().size());
        }
        session(ending.isOverdue() ? "overdue" : ending.rollout() == null ? "returned" : "completed");
    }
}
