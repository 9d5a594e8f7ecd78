package dev.millrace.cli.replay;

import dev.millrace.cli.HelpHeading;
import dev.millrace.replay.StepRange;
import dev.millrace.runtime.config.ConfigException;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import picocli.CommandLine.Option;

/** Options that select batches. */
@HelpHeading("A part of the run")
public final class StepRangeOptions {
    @Option(
            names = "--from-version",
            paramLabel = "A",
            description = "Only batches assembled against this version and newer ones.")
    private Long fromVersion;

    @Option(
            names = "--to-version",
            paramLabel = "B",
            description = "Only batches assembled against this version and older ones.")
    private Long toVersion;

    @Option(
            names = "--from-time",
            paramLabel = "TIME",
            description = "Only batches assembled at this time or later, such as 2026-05-01T10:00:00Z.")
    private String fromTime;

    @Option(names = "--to-time", paramLabel = "TIME", description = "Only batches assembled at this time or earlier.")
    private String toTime;

    @Option(
            names = "--from-offset",
            paramLabel = "N",
            description = "Only batches from this offset of the topic batches on.")
    private Long fromOffset;

    @Option(names = "--to-offset", paramLabel = "N", description = "Only batches up to this offset.")
    private Long toOffset;

    /** Returns whether any is given. */
    public boolean isGiven() {
        return fromVersion != null
                || toVersion != null
                || fromTime != null
                || toTime != null
                || fromOffset != null
                || toOffset != null;
    }

    /** The lowest given version; null without one. */
    Long fromVersion() {
        return fromVersion;
    }

    /** The highest given version; null without one. */
    Long toVersion() {
        return toVersion;
    }

    /** Returns whether batches are selected by other criteria than versions. */
    boolean isByTimeOrOffset() {
        return fromTime != null || toTime != null || fromOffset != null || toOffset != null;
    }

    /** The combined range. */
    public StepRange range() {
        try {
            return new StepRange(
                    least(fromVersion),
                    most(toVersion),
                    fromTime == null ? Long.MIN_VALUE : ms(fromTime),
                    toTime == null ? Long.MAX_VALUE : ms(toTime),
                    least(fromOffset),
                    most(toOffset));
        } catch (IllegalArgumentException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
    }

    private static long least(Long value) {
        return value == null ? Long.MIN_VALUE : value;
    }

    private static long most(Long value) {
        return value == null ? Long.MAX_VALUE : value;
    }

    private static long ms(String time) {
        try {
            return Instant.parse(time).toEpochMilli();
        } catch (DateTimeParseException e) {
            throw new ConfigException("a time must be like 2026-05-01T10:00:00Z: " + time, e);
        }
    }
}
