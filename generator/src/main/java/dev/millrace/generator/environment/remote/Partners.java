package dev.millrace.generator.environment.remote;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;

/** Those who are asked in this process, each once, and the clock by which they are waited for. */
final class Partners {
    private static final Map<RemotePlace, Partner> ASKED = new ConcurrentHashMap<>();
    private static final ScheduledThreadPoolExecutor CLOCK = clock();

    private Partners() {}

    /** That of a place, over HTTP or a command. */
    static Partner of(RemotePlace place) {
        return ASKED.computeIfAbsent(
                place,
                asked -> asked.url().isEmpty() ? new CommandPartner(asked, CLOCK) : new HttpPartner(asked, CLOCK));
    }

    static ScheduledExecutorService sharedClock() {
        return CLOCK;
    }

    private static ScheduledThreadPoolExecutor clock() {
        ScheduledThreadPoolExecutor clock = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = Executors.defaultThreadFactory().newThread(task);
            thread.setName("partner-limits");
            thread.setDaemon(true);
            return thread;
        });
        clock.setRemoveOnCancelPolicy(true);
        return clock;
    }
}
