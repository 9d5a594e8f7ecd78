package dev.millrace.learner;

import dev.millrace.learner.UnservedVersions.Unserved;
import dev.millrace.log.EvaluationLog;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import dev.millrace.weights.store.ObjectStore;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MultiGauge;
import io.micrometer.core.instrument.Tags;
import java.time.Clock;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks after published versions on a thread of its own: says who does not serve them, and removes those that nobody
 * needs, and watches that Kafka's own limit does not take the best one without a word.
 *
 * <p>There is one, beside the learner that publishes. The learner does not wait for it and does not stop if it fails; it
 * then says why and tries again. Meters: {@code millrace.serving.unserved.seconds} by server, there only while it is an
 * alarm, and {@code millrace.weights.oldest.version}.
 */
public final class VersionRetention implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(VersionRetention.class);
    private static final Duration PERIOD = Duration.ofSeconds(1);
    private static final Duration LIMIT = Duration.ofSeconds(5);
    /** Between looks at whether the best version stays; the broker itself looks every five minutes unless told otherwise. */
    private static final Duration LOOK = Duration.ofSeconds(5);
    /** Removal reads who needs what, so it comes once in a sixteenth of the versions kept. */
    private static final int REMOVALS_PER_WINDOW = 16;

    private final LogConnection connection;
    private final WeightsConfig config;
    private final List<Long> fixed;
    private final Clock clock;
    private final MultiGauge unservedSeconds;
    private final Gauge oldestGauge;
    private final MeterRegistry registry;
    private final UnservedVersions unservedVersions;
    private final Thread thread;
    /** When each alarm was last written to the log, so that one that stays is written at 1, 2, 4, 8... times the limit. */
    private final Map<String, Long> saidAtAgeMs = new HashMap<>();

    private long lastRemoval = -1;
    private long lookedAtMs;
    private long failures;
    private volatile long oldestKept;
    private volatile boolean closed;

    /**
     * Registers the meters; begins with {@link #start()}.
     *
     * @param fixed versions that fixed policies are, such as a reference; they are kept, and with them everything after
     */
    public VersionRetention(
            LogConnection connection,
            WeightsConfig config,
            Collection<Long> fixed,
            MeterRegistry registry,
            Clock clock) {
        this.fixed = List.copyOf(fixed);
        this.connection = connection;
        this.config = config;
        this.clock = clock;
        this.registry = registry;
        this.unservedVersions = new UnservedVersions(config.unservedAlarmMs(), clock.millis());
        this.unservedSeconds = MultiGauge.builder("millrace.serving.unserved.seconds")
                .description("for how long a server has not served what is published; there only while it is an alarm")
                .register(registry);
        this.oldestGauge = Gauge.builder("millrace.weights.oldest.version", this, care -> care.oldestKept)
                .description("oldest version whose weights are kept")
                .register(registry);
        this.thread = new Thread(this::run, "version-care");
        thread.setDaemon(true);
    }

    /** Begins; clients are made after the first second, so that a learner that ends at once does not wait for them. */
    public void start() {
        thread.start();
    }

    private void run() {
        while (pause()) {
            try (PolicyFeed feed = new PolicyFeed(connection, config);
                    Admin admin = Admin.create(connection.admin());
                    ServingVersions board = new ServingVersions(connection, clock);
                    UnscoredRollouts unscored = new UnscoredRollouts(connection, admin);
                    EvaluationLog evaluated = new EvaluationLog(connection)) {
                VersionRemoval removal = new VersionRemoval(connection, admin, feed, stores(), LIMIT.toMillis());
                BestVersionWatch watch = new BestVersionWatch(connection, admin, feed, LIMIT.toMillis());
                do {
                    retain(feed, board, unscored, evaluated, removal, watch);
                } while (pause());
            } catch (InterruptedException e) {
                return;
            } catch (RuntimeException e) {
                failed(e);
            }
        }
    }

    /** Each once, of those in which versions lie. */
    private List<ObjectStore> stores() {
        return Stream.of(config.store(), config.stateStore())
                .distinct()
                .flatMap(location -> ObjectStore.of(location).stream())
                .toList();
    }

    /** False once it is closed. */
    @SuppressWarnings("WaitNotInLoop") // woken early it looks early, which does no harm
    private synchronized boolean pause() {
        try {
            if (!closed) {
                wait(PERIOD.toMillis());
            }
        } catch (InterruptedException e) {
            return false;
        }
        return !closed;
    }

    private void retain(
            PolicyFeed feed,
            ServingVersions board,
            UnscoredRollouts unscored,
            EvaluationLog evaluated,
            VersionRemoval removal,
            BestVersionWatch watch)
            throws InterruptedException {
        PolicyVersion newest = feed.newest().orElse(null);
        if (newest == null) {
            return;
        }
        board.update(LIMIT);
        Collection<Server> servers = board.servers();
        report(unservedVersions.find(
                newest.getVersion(), servers, version -> publishedAt(feed, version), clock.millis()));
        int period = Math.max(1, config.keepVersions() / REMOVALS_PER_WINDOW);
        try {
            if (config.keepVersions() > 0 && newest.getVersion() >= lastRemoval + period) {
                // servers first: what leaves them for the log in the meantime is then found there
                RetainedVersions needed = RetainedVersions.of(
                        newest.getVersion(),
                        config.keepVersions(),
                        servers,
                        fixed,
                        unscored.oldestVersion(LIMIT),
                        best(evaluated).stream()
                                .mapToLong(VersionEvaluation::getVersion)
                                .findFirst());
                oldestKept = removal.remove(needed, newest.getVersion());
                lastRemoval = newest.getVersion();
            }
            if (clock.millis() - lookedAtMs >= LOOK.toMillis()) {
                watch.look(best(evaluated));
                lookedAtMs = clock.millis();
            }
        } catch (TimeoutException e) {
            failed(e);
        }
    }

    /** @throws TimeoutException if it cannot be known in time: then nothing is removed */
    private static Optional<VersionEvaluation> best(EvaluationLog evaluated) throws TimeoutException {
        if (!evaluated.update(LIMIT)) {
            throw new TimeoutException("the evaluations could not be read within " + LIMIT.toMillis() + " ms");
        }
        return evaluated.best();
    }

    private static long publishedAt(PolicyFeed feed, long version) {
        try {
            return feed.manifest(version).getPublishedAtMs();
        } catch (VersionUnavailableException e) {
            return 0;
        }
    }

    private void report(List<Unserved> unserved) {
        unservedSeconds.register(
                unserved.stream()
                        .map(alarm -> MultiGauge.Row.of(Tags.of("server", alarm.who()), alarm.ageMs() / 1e3))
                        .toList(),
                true);
        for (Unserved alarm : unserved) {
            Long said = saidAtAgeMs.get(alarm.who());
            if (said == null || alarm.ageMs() >= 2 * said) {
                saidAtAgeMs.put(alarm.who(), alarm.ageMs());
                LOG.warn("published but not served: {}", alarm.detail());
            }
        }
        saidAtAgeMs.keySet().removeIf(who -> {
            boolean over = unserved.stream().noneMatch(alarm -> alarm.who().equals(who));
            if (over) {
                LOG.info("the alarm about {} is over", who);
            }
            return over;
        });
    }

    private void failed(Exception e) {
        failures++;
        if (Long.bitCount(failures) == 1 && !closed) { // the 1st, 2nd, 4th, 8th...
            LOG.warn("versions are not looked after, {} times so far: {}", failures, e.getMessage());
        }
    }

    @Override
    public void close() {
        closed = true;
        synchronized (this) {
            notifyAll();
        }
        try {
            thread.join(2 * LIMIT.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (thread.isAlive()) {
            LOG.warn("the thread that looks after versions did not end within {} ms", 2 * LIMIT.toMillis());
        }
        unservedSeconds.register(List.of(), true);
        registry.remove(oldestGauge);
    }
}
