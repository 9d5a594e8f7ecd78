package dev.millrace.runtime.pipeline;

import dev.millrace.log.ClockWatch;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.EpochWatch;
import dev.millrace.log.run.PlaceWatch;
import dev.millrace.log.run.RootCause;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import java.time.Clock;

/**
 * Ends the roles of a process when their epoch ends, because a rollback begins a new one and fences them, or when the
 * run's roles are asked to stop.
 */
public final class EpochEnd {
    private final LogConnection connection;
    private final EpochWatch watch;
    private final PlaceWatch places;

    /** @param stop made when the run's roles are asked to stop */
    public EpochEnd(LogConnection connection, StopRequest stop) {
        this.connection = connection;
        this.watch = new EpochWatch(connection, stop::make);
        this.places = new PlaceWatch(connection);
    }

    /**
     * Refuses a process that was configured with another epoch than the run's current one.
     *
     * @throws ConfigException naming both
     */
    public static void requireEpoch(MillraceConfig config, LogConnection connection) {
        int asked = config.run().epoch();
        int there = connection.run().epoch();
        if (asked >= 0 && asked != there) {
            throw new ConfigException(
                    "run.epoch is " + asked + " and run " + config.run().id() + " is in epoch " + there
                            + "; leave run.epoch out to read it from the log, or begin another epoch with millrace"
                            + " rollback");
        }
    }

    /** Watches for a newer epoch and fails then, which stops the roles. */
    public Role role() {
        return new Role(
                "run's epoch",
                () -> {
                    watch.run();
                    watch.sentence().ifPresent(sentence -> {
                        throw new IllegalStateException(sentence);
                    });
                },
                watch::stop);
    }

    /** Checks that cluster and topics are still those of the run, and raises an alarm if not. */
    public Role places() {
        return new Role("run's topics", places::run, places::stop);
    }

    /** Raises an alarm when the wall clock was set back. */
    public Role clock(String process) {
        ClockWatch clock = new ClockWatch(process, connection.alarms(), Clock.systemUTC());
        return new Role("clock", clock::run, clock::stop);
    }

    /** The failure as reported to the user: a new epoch, or a changed cluster or topic, where that is the cause. */
    public RuntimeException explained(RuntimeException failure) {
        return watch.sentence()
                .or(() -> RootCause.of(connection))
                .<RuntimeException>map(sentence -> new RefusedRequestException(sentence, failure))
                .orElse(failure);
    }
}
