package dev.millrace.scorer;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.LogConnection;
import dev.millrace.scorer.RolloutReading.Scorable;
import dev.millrace.scorer.RolloutReading.Skipped;
import dev.millrace.weights.NewestWeights;
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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role that scores: reads rollouts as they come and writes what the learner's engine thinks of their tokens.
 *
 * <p>Whatever one poll gives is scored together and committed together, so batches grow with the load. A rollout that
 * cannot be read is skipped and counted here; the topology reads the same record and dead-letters it.
 *
 * <p>Meters: {@code millrace.scorer.tokens} (response tokens scored), {@code .rollouts}, {@code .unavailable} (scores
 * without OLD), {@code .skipped.rollouts} by reason, {@code .idle.seconds} (waiting for rollouts), and the gauge
 * {@code millrace.policy.version} with role scorer.
 */
public final class Scorer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Scorer.class);
    private static final Duration POLL = Duration.ofMillis(100);

    private final LogConnection connection;
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
    private long lastHeartbeatMs;
    private long totalTokens;

    /**
     * @param feed stays the caller's; it must outlive {@link #run()}
     * @param engine that scoring runs on: the same kind and threads as the learner's, since old and proximal are to be its
     *     log-probs
     */
    public Scorer(LogConnection connection, PolicyFeed feed, Engine engine, ScorerConfig config, MeterRegistry meters,
            Clock clock) {
        this.connection = connection;
        this.feed = feed;
        this.engine = engine;
        this.config = config;
        this.meters = meters;
        this.clock = clock;
        this.log = new ScoreLog(connection, config);
        this.tokens = Counter.builder("millrace.scorer.tokens").description("response tokens scored").register(meters);
        this.rollouts = Counter.builder("millrace.scorer.rollouts").description("rollouts scored").register(meters);
        this.unavailable = Counter.builder("millrace.scorer.unavailable")
                .description("scores that lack a version which cannot be had").register(meters);
        this.idle = Counter.builder("millrace.scorer.idle.seconds").description("time without rollouts").register(meters);
        Gauge.builder("millrace.policy.version", this, s -> s.servedVersion).tag("role", "scorer").register(meters);
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
                feed.awaitFirst(Duration.ofMillis(config.firstVersionTimeoutMs()), () -> stopped);
        if (first.isEmpty()) {
            return;
        }
        DecoderShape shape = PolicyFeed.shapeOf(first.get());
        RolloutCheck check = new RolloutCheck(connection, first.get().getTokenizerHash(), shape);
        try (NewestWeights newest = new NewestWeights(feed, Duration.ofMillis(config.firstVersionTimeoutMs()));
                ScoringSession session = new ScoringSession(engine, shape, config.tokenBudget())) {
            KnownVersions versions = new KnownVersions(feed, newest, config);
            BatchScoring scoring = new BatchScoring(connection, config, session, versions);
            log.takeOver();
            while (!stopped) {
                ConsumerRecords<byte[], byte[]> read = read();
                List<Scorable> scorable = scorable(read, check);
                List<Score> scores = scorable.isEmpty() ? List.of() : scoring.score(scorable, clock.millis());
                Serving serving = servingIfDue(versions.newest());
                if (!read.isEmpty() || serving != null) {
                    commit(read, scorable, scores, serving);
                }
            }
            log.commit(ConsumerRecords.empty(), List.of(), serving(servedVersion, clock.millis(), true));
        }
    }

    private ConsumerRecords<byte[], byte[]> read() {
        long from = System.nanoTime();
        ConsumerRecords<byte[], byte[]> read = log.poll(POLL);
        idle.increment((System.nanoTime() - from) / 1e9);
        return read;
    }

    private List<Scorable> scorable(ConsumerRecords<byte[], byte[]> read, RolloutCheck check) {
        List<Scorable> scorable = new ArrayList<>(read.count());
        for (ConsumerRecord<byte[], byte[]> record : read) {
            RolloutReading reading = check.read(record);
            if (reading instanceof Skipped skipped) {
                meters.counter("millrace.scorer.skipped.rollouts", "reason", skipped.reason()).increment();
                LOG.debug("skipped {}-{}@{}: {}", record.topic(), record.partition(), record.offset(), skipped.message());
            } else {
                scorable.add((Scorable) reading);
            }
        }
        return scorable;
    }

    private Serving servingIfDue(long version) {
        long now = clock.millis();
        if (version != servedVersion) {
            servedVersion = version;
            servingSinceMs = now;
        } else if (now - lastHeartbeatMs < config.heartbeatMs()) {
            return null;
        }
        lastHeartbeatMs = now;
        return serving(version, now, false);
    }

    /** Rollouts that are read and not committed are behind the group's offset, so there is no oldest version to name. */
    private Serving serving(long version, long now, boolean left) {
        return new Serving(connection.run().runId(), connection.run().epoch(), config.id(), ServerRole.SCORER,
                connection.run().policyId(), version, servingSinceMs, now, totalTokens, null, left);
    }

    private void commit(ConsumerRecords<byte[], byte[]> read, List<Scorable> scored, List<Score> scores, Serving serving) {
        if (!log.commit(read, scores, serving)) {
            LOG.warn("scorer {} lost its partitions before it could commit; {} rollouts are scored again", config.id(),
                    scored.size());
            return;
        }
        long responseTokens = scored.stream().mapToLong(Scorable::responseLength).sum();
        totalTokens += responseTokens;
        tokens.increment(responseTokens);
        rollouts.increment(scored.size());
        unavailable.increment(scores.stream().filter(score -> score.getUnavailable() != null).count());
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
