package dev.millrace.learner;

import dev.millrace.log.Pulse;
import dev.millrace.schemas.TrainingStep;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.MDC;

final class LearnerMeters {
    private static final String PHASE_PREFIX = "seconds_";

    private final MeterRegistry registry;
    private final Counter steps;
    private final Counter tokens;
    private final Counter starved;
    private final Counter idleSeconds;
    private final AtomicLong version = new AtomicLong(-1);
    private final Pulse pulse;
    private final List<Gauge> gauges;

    LearnerMeters(MeterRegistry registry, Pulse pulse) {
        this.registry = registry;
        this.pulse = pulse;
        this.steps = Counter.builder("millrace.learner.steps")
                .description("Batches consumed and committed, starved ones included")
                .register(registry);
        this.tokens = Counter.builder("millrace.learner.tokens")
                .description("Tokens trained on")
                .register(registry);
        this.starved = Counter.builder("millrace.learner.starved")
                .description("Batches without a token left to train on, which made no version")
                .register(registry);
        this.idleSeconds = Counter.builder("millrace.learner.idle.seconds")
                .description("Wall-clock seconds spent waiting for batches")
                .register(registry);
        this.gauges = List.of(
                Gauge.builder("millrace.policy.version", version, AtomicLong::get)
                        .description("Newest policy version, as each role knows it")
                        .tag("role", "learner")
                        .strongReference(true)
                        .register(registry),
                Gauge.builder("millrace.learner.progress.age.seconds", this, LearnerMeters::secondsSinceProgress)
                        .description("Seconds since the learner last looked for a batch or ended a phase of a step")
                        .strongReference(true)
                        .register(registry));
    }

    /** Makes way for the gauges of a learner that starts again in this process; what was counted stays. */
    void removeGauges() {
        gauges.forEach(registry::remove);
    }

    private double secondsSinceProgress() {
        return pulse.age().toNanos() / 1e9;
    }

    void idle(double seconds) {
        idleSeconds.increment(seconds);
    }

    void progress() {
        pulse.turn();
    }

    void ready() {
        pulse.turn(Optional.empty());
    }

    void restoring() {
        pulse.turn(Optional.of("it restores the training state"));
    }

    /** Called by the learner's thread, whose log lines name it. */
    void version(long newest) {
        version.set(newest);
        MDC.put("version", Long.toString(newest));
    }

    void committed(TrainingStep step) {
        steps.increment();
        tokens.increment(step.getTokensTrained());
        starved.increment(step.getStarved() ? 1 : 0);
        step.getMetrics().forEach((name, value) -> {
            if (name.startsWith(PHASE_PREFIX)) {
                Counter.builder("millrace.learner.phase.seconds")
                        .description("Wall-clock seconds by phase of a step")
                        .tag("phase", name.substring(PHASE_PREFIX.length()))
                        .register(registry)
                        .increment(value);
            }
        });
        version(step.getVersion());
    }
}
