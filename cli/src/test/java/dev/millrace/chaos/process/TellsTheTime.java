package dev.millrace.chaos.process;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Instant;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

/** A process that, for each line, says by how many hours each way to ask for the time differs from the time since it was started. */
public final class TellsTheTime {
    private static final Clock CLOCK = Clock.systemUTC();

    private TellsTheTime() {}

    /** Until its input ends. */
    public static void main(String[] args) throws IOException {
        long startMs = System.currentTimeMillis();
        long startNanos = System.nanoTime();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (lines.readLine() != null) {
            tell(startMs + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNanos));
        }
    }

    /** A method that runs when the clock is set continues with the code that it has: this one is called anew each time. */
    private static void tell(long rightMs) {
        LongSupplier reference = CLOCK::millis;
        long[] told = {
            System.currentTimeMillis(),
            Instant.now().toEpochMilli(),
            CLOCK.millis(),
            CLOCK.instant().toEpochMilli(),
            reference.getAsLong()
        };
        System.out.println(Arrays.stream(told)
                .mapToObj(ms -> Long.toString(Math.round((ms - rightMs) / 3.6e6)))
                .collect(Collectors.joining(" ")));
    }
}
