package dev.millrace.runtime.metrics;

import dev.millrace.log.Pulse;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.function.BooleanSupplier;

/**
 * Answers of {@code /livez} and {@code /readyz} for the roles of a process.
 *
 * @param bound longest time between two turns of a role's loop; above every wait that ends by itself
 * @param hasFailed whether a role's thread has ended unexpectedly
 */
public record Probes(Map<String, Pulse> pulses, Duration bound, BooleanSupplier hasFailed) {

    /** Why the process should be restarted; empty if it should not. Contains no address and no exception text. */
    public Optional<String> whyDead() {
        if (hasFailed.getAsBoolean()) {
            return Optional.of("a role has failed; see the log");
        }
        return pulses.entrySet().stream()
                .filter(role -> role.getValue().age().compareTo(bound) > 0)
                .findFirst()
                .map(role -> role.getKey() + ": its loop has made no iteration for "
                        + role.getValue().age().toSeconds() + " s, more than " + bound.toSeconds() + " s");
    }

    /** Why the process does not do its work; empty if it does. */
    public Optional<String> whyUnready() {
        return whyDead()
                .or(() -> pulses.entrySet().stream()
                        .flatMap(role -> role.getValue().whyUnready().map(why -> role.getKey() + ": " + why).stream())
                        .findFirst());
    }
}
