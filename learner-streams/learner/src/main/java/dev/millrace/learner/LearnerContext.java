package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;

/**
 * The run that a learner trains, and its access to the run's log.
 *
 * @param initial the policy of a fresh run; a resumed run must have its shape and vocabulary
 */
public record LearnerContext(
        LogConnection connection,
        LearnerConfig config,
        WeightsConfig weights,
        InitialPolicy initial,
        MeterRegistry registry,
        Clock clock,
        VersionCommitter.Producers producers) {

    /** With real producers. */
    public LearnerContext(
            LogConnection connection,
            LearnerConfig config,
            WeightsConfig weights,
            InitialPolicy initial,
            MeterRegistry registry,
            Clock clock) {
        this(connection, config, weights, initial, registry, clock, VersionCommitter.Producers.kafka());
    }
}
