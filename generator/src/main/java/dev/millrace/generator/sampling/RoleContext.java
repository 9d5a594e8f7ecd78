package dev.millrace.generator.sampling;

import dev.millrace.log.LogConnection;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;

/**
 * What a role that samples runs in. All of it stays the caller's and must outlive the role.
 *
 * @param feed of the run's versions
 */
public record RoleContext(LogConnection connection, PolicyFeed feed, MeterRegistry meters, Clock clock) {}
