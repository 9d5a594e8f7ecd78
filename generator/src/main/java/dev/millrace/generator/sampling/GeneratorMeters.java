package dev.millrace.generator.sampling;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import org.slf4j.MDC;

/** What a generator counts. Thread-safe: the sampling thread and the committing one both do. */
final class GeneratorMeters {
    private final MeterRegistry registry;
    private final Counter tokens;
    private final Counter forced;
    private final Counter copied;
    private final Counter rollouts;
    private final Counter swaps;
    private final Counter idle;
    private final Counter failed;
    private volatile long servedVersion = -1;
    private volatile int unjudged;

    GeneratorMeters(MeterRegistry registry) {
        this.registry = registry;
        this.tokens = Counter.builder("millrace.generator.tokens")
                .description("tokens sampled")
                .register(registry);
        this.forced = Counter.builder("millrace.generator.tokens.forced")
                .description("tokens forced through the engine: prompts, environments, recomputed sequences")
                .register(registry);
        this.copied = Counter.builder("millrace.generator.tokens.copied")
                .description(
                        "tokens of prompts whose keys and values were copied from another sample of the group, or kept of a conversation")
                .register(registry);
        this.rollouts = Counter.builder("millrace.generator.rollouts")
                .description("rollouts committed")
                .register(registry);
        this.swaps = Counter.builder("millrace.generator.swaps")
                .description("versions loaded")
                .register(registry);
        this.idle = Counter.builder("millrace.generator.idle.seconds")
                .description("time without anything to sample, or with every sequence waiting for its environment")
                .register(registry);
        this.failed = Counter.builder("millrace.generator.failed.rollouts")
                .description("rollouts that ended as FAILED, since their environment or their reward failed")
                .register(registry);
        Gauge.builder("millrace.generator.unjudged", this, m -> m.unjudged)
                .description("finished responses that wait for their reward")
                .register(registry);
        Gauge.builder("millrace.policy.version", this, m -> m.servedVersion)
                .tag("role", "generator")
                .register(registry);
    }

    void tokens(long sampled, long forcedThrough, long copiedOver) {
        tokens.increment(sampled);
        forced.increment(forcedThrough);
        copied.increment(copiedOver);
    }

    void idle(long nanos) {
        idle.increment(nanos / 1e9);
    }

    /**
     * Called by the sampling thread, whose log lines name the version.
     *
     * @param swapped false for the version it begins with
     */
    void serving(long version, boolean swapped) {
        servedVersion = version;
        MDC.put("version", Long.toString(version));
        if (swapped) {
            swaps.increment();
        }
    }

    /** The version that is sampled with; -1 before there is one. */
    long servedVersion() {
        return servedVersion;
    }

    /** Finished responses that wait for their verifier. */
    void unjudged(int responses) {
        unjudged = responses;
    }

    void committed(RolloutWriter.Work work) {
        rollouts.increment(work.rollouts().size());
        failed.increment(work.rollouts().stream()
                .filter(rollout -> rollout.sequence().failure() != null)
                .count());
        for (RefusedPrompt refused : work.refused()) {
            registry.counter(
                            "millrace.generator.refused.prompts",
                            "reason",
                            refused.reason().code())
                    .increment();
        }
    }
}
