package dev.millrace.scorer;

import dev.millrace.log.LogConnection;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.scorer.RolloutReading.Scorable;
import dev.millrace.scorer.RolloutReading.Skipped;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role that scores: reads rollouts as they come and writes what the learner's engine thinks of their tokens.
 *
 * <p>Whatever one poll gives is scored together and committed together, so batches grow with the load. A rollout that
 * cannot be read is skipped and counted here; the topology reads the same record and dead-letters it.
 *
 * <p>What it says of itself has, too, how the log-probs that each generator sends differ from those of the version that it
 * names: see {@code admission.quarantine}.
 *
 * <p>A scorer of another {@link ScorerPurpose} scores under one policy that stays as it is.
 *
 * <p>Meters: {@code millrace.scorer.tokens} (response tokens scored), {@code .rollouts}, {@code .unavailable} (scores
 * without OLD), {@code .skipped.rollouts} by reason, {@code .idle.seconds} (waiting for rollouts), and the gauge
 * {@code millrace.policy.version} with role scorer. Another purpose's name is in the place of {@code scorer}, and it
 * serves no version.
 */
public final class Scorer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Scorer.class);
    private static final Duration POLL = Duration.ofMillis(100);

    private final LogConnection connection;
    private final ScorerPurpose purpose;
    private final PolicyFeed feed;
    private final Engine engine;
    private final ScorerConfig config;
    private final MeterRegistry meters;
    private final Clock clock;
    private final ScoreLog log;
    private final Counter tokens;
    private final Counter rollouts;
    private final Counter unavailable;
    private final Counter idle;
    private volatile boolean stopped;
    private volatile long servedVersion = -1;
    private long servingSinceMs;
    private long lastHeartbeatNanos;
    private long totalTokens;
    private final ReportedLogProbs reported = new ReportedLogProbs();

    /**
     * @param feed stays the caller's; it must outlive {@link #run()}
     * @param engine that scoring runs on: the same kind and threads as the learner's, since old and proximal are to be its
     *     log-probs
     */
    public Scorer(
            LogConnection connection,
            PolicyFeed feed,
            Engine engine,
            ScorerConfig config,
            MeterRegistry meters,
            Clock clock) {
        this(connection, ScorerPurpose.LEARNER, feed, engine, config, meters, clock);
    }

    /**
     * A scorer of any purpose.
     *
     * @throws IllegalArgumentException if the configuration names no policy for the purpose
     */
    public Scorer(
            LogConnection connection,
            ScorerPurpose purpose,
            PolicyFeed feed,
            Engine engine,
            ScorerConfig config,
            MeterRegistry meters,
            Clock clock) {
        if (purpose != ScorerPurpose.LEARNER && !config.fixed(purpose).isGiven()) {
            throw new IllegalArgumentException(
                    "scorer." + purpose.role() + " names no policy; set its version or its directory");
        }
        this.connection = connection;
        this.purpose = purpose;
        this.feed = feed;
        this.engine = engine;
        this.config = config;
        this.meters = meters;
        this.clock = clock;
        this.log = new ScoreLog(connection, purpose, config);
        this.tokens = Counter.builder(meter("tokens"))
                .description("response tokens scored")
                .register(meters);
        this.rollouts = Counter.builder(meter("rollouts"))
                .description("rollouts scored")
                .register(meters);
        this.unavailable = Counter.builder(meter("unavailable"))
                .description("scores that lack a version which cannot be had")
                .register(meters);
        this.idle = Counter.builder(meter("idle.seconds"))
                .description("time without rollouts")
                .register(meters);
        if (purpose == ScorerPurpose.LEARNER) {
            Gauge.builder("millrace.policy.version", this, s -> s.servedVersion)
                    .tag("role", "scorer")
                    .register(meters);
        }
    }

    private String meter(String name) {
        return "millrace." + purpose.role() + "." + name;
    }

    /**
     * Scores until {@link #stop()}.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws IllegalStateException if another scorer has taken this one's id
     * @throws dev.millrace.policy.session.NonFiniteScoreException if the policy has diverged
     */
    public void run() {
        Optional<PolicyVersion> first =
                feed.awaitFirst(connection.limit(config.firstVersionTimeoutMs()), () -> stopped);
        if (first.isEmpty()) {
            return;
        }
        DecoderShape shape = PolicyFeed.shapeOf(first.get());
        ScorableCheck check = new ScorableCheck(connection, first.get().getTokenizerHash(), shape);
        try (Scoring scoring = purpose == ScorerPurpose.LEARNER
                ? BatchScoring.open(connection, feed, engine, config, shape)
                : FixedScoring.open(connection, feed, engine, purpose, config, shape)) {
            boolean isOpen = log.open(() -> stopped);
            while (isOpen && !stopped) {
                ConsumerRecords<byte[], byte[]> read = read();
                List<Scorable> scorable = scorable(read, check);
                List<Score> scores = scorable.isEmpty() ? List.of() : scoring.score(scorable, clock.millis());
                Serving serving = servingIfDue(scoring.newest());
                if (!read.isEmpty() || serving != null) {
                    commit(read, scorable, scores, serving);
                }
            }
            if (isOpen && servedVersion != Scoring.NOT_SERVING) {
                log.commit(
                        ConsumerRecords.empty(),
                        List.of(),
                        serving(servedVersion, clock.millis(), true),
                        () -> stopped);
            }
        }
    }

    private ConsumerRecords<byte[], byte[]> read() {
        long from = System.nanoTime();
        ConsumerRecords<byte[], byte[]> read = log.poll(POLL);
        idle.increment((System.nanoTime() - from) / 1e9);
        return read;
    }

    private List<Scorable> scorable(ConsumerRecords<byte[], byte[]> read, ScorableCheck check) {
        List<Scorable> scorable = new ArrayList<>(read.count());
        for (ConsumerRecord<byte[], byte[]> record : read) {
            RolloutReading reading = check.read(record);
            if (reading instanceof Skipped skipped) {
                meters.counter(meter("skipped.rollouts"), "reason", skipped.reason())
                        .increment();
                LOG.debug(
                        "skipped {}-{}@{}: {}", record.topic(), record.partition(), record.offset(), skipped.message());
            } else {
                scorable.add((Scorable) reading);
            }
        }
        return scorable;
    }

    private @Nullable Serving servingIfDue(long version) {
        if (version == Scoring.NOT_SERVING) {
            return null; // the newest version is no concern of a fixed policy
        }
        long now = clock.millis();
        long monotonic = System.nanoTime(); // the clock may be set back, and who is not heard of is forgotten
        if (version != servedVersion) {
            servedVersion = version;
            servingSinceMs = now;
        } else if (monotonic - lastHeartbeatNanos < config.heartbeatMs() * 1_000_000L) {
            return null;
        }
        lastHeartbeatNanos = monotonic;
        return serving(version, now, false);
    }

    /** Rollouts that are read and not committed are behind the group's offset, so there is no oldest version to name. */
    private Serving serving(long version, long now, boolean left) {
        return new Serving(
                connection.run().runId(),
                connection.run().epoch(),
                config.id(),
                ServerRole.SCORER,
                connection.run().policyId(),
                version,
                servingSinceMs,
                now,
                totalTokens,
                null,
                left,
                new EngineIdentity("onnxruntime", Engine.runtimeVersion(), "float32", null),
                reported.unwritten(),
                null);
    }

    private void commit(
            ConsumerRecords<byte[], byte[]> read,
            List<Scorable> scored,
            List<Score> scores,
            @Nullable Serving serving) {
        if (!log.commit(read, scores, serving, () -> stopped)) {
            LOG.warn(
                    "{} {} could not commit what it had read; {} rollouts are scored again",
                    purpose.role(),
                    config.id(),
                    scored.size());
            return;
        }
        if (serving != null) {
            reported.written();
        }
        if (purpose == ScorerPurpose.LEARNER) {
            reported.add(scored, scores);
        }
        long responseTokens =
                scored.stream().mapToLong(Scorable::responseLength).sum();
        totalTokens += responseTokens;
        tokens.increment(responseTokens);
        rollouts.increment(scored.size());
        unavailable.increment(
                scores.stream().filter(score -> score.getUnavailable() != null).count());
    }

    /** Makes {@link #run()} return after the batch it is at. Thread-safe; returns at once. */
    public void stop() {
        stopped = true;
        log.wakeup();
    }

    /** Call after {@link #run()} has returned. */
    @Override
    public void close() {
        log.close();
    }
}
