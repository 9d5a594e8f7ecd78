package dev.millrace.gateway.engine;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Locale;

/** What is counted of another program's engine, beside what a generator counts. */
final class EngineMeters {
    private final MeterRegistry registry;
    private final Counter tokens;
    private final Counter answers;
    private final Counter updates;
    private final Counter updateSeconds;
    private volatile long servedVersion = -1;

    EngineMeters(MeterRegistry registry) {
        this.registry = registry;
        this.tokens = Counter.builder("millrace.generator.tokens")
                .description("tokens sampled")
                .register(registry);
        this.answers = Counter.builder("millrace.engine.answers")
                .description("answers of another program's engine that were taken")
                .register(registry);
        this.updates = Counter.builder("millrace.engine.updates")
                .description("versions that another program's engine has taken up")
                .register(registry);
        this.updateSeconds = Counter.builder("millrace.engine.update.seconds")
                .description("from writing a version to the end of what is looked into")
                .register(registry);
        if (registry.find("millrace.policy.version").tag("role", "generator").gauge() == null) { // a gateway has none
            Gauge.builder("millrace.policy.version", this, m -> m.servedVersion)
                    .tag("role", "generator")
                    .register(registry);
        }
    }

    void answered(int sampled) {
        tokens.increment(sampled);
        answers.increment();
    }

    /** An answer was not taken. */
    void failed(String kind) {
        registry.counter("millrace.engine.lost.answers", "reason", kind.toLowerCase(Locale.ROOT))
                .increment();
    }

    void updated(long version, long nanos) {
        servedVersion = version;
        updates.increment();
        updateSeconds.increment(nanos / 1e9);
    }

    void updateFailed() {
        registry.counter("millrace.engine.failed.updates").increment();
    }
}
