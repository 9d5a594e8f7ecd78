package dev.millrace.scorer;

import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.ComparedLogProbs;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.RolloutLimits;
import dev.millrace.schemas.rollout.RolloutValidator;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.scorer.RolloutReading.Scorable;
import dev.millrace.scorer.RolloutReading.Skipped;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/**
 * The role scorer: reads rollouts and writes their log-probs by the learner's engine.
 *
 * <p>Scores and commits the rollouts of one poll together, so batches grow with the load. Skips and counts unreadable
 * rollouts; the topology dead-letters them.
 *
 * <p>Its heartbeats compare the log-probs of each generator with its own, for {@code admission.quarantine}.
 *
 * <p>A scorer of another {@link ScorerPurpose} scores under one fixed policy.
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
    private final Pulse pulse;
    private final ScoreLog log;
    private final Counter tokens;
    private final Counter rollouts;
    private final Counter unavailable;
    private final Counter idle;
    private volatile boolean stopped;
    private volatile long servedVersion = -1;
    private long servingSinceMs;
    private boolean hasNews;
    private long lastHeartbeatNanos;
    private long totalTokens;
    private final ReportedLogProbs reported = new ReportedLogProbs();

    /**
     * @param feed not closed; must outlive {@link #run()}
     * @param engine of the same kind and threads as the learner's, whose log-probs old and proximal are
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
        this.pulse = connection.alarms().begin(purpose.role());
        this.log = new ScoreLog(connection, purpose, config);
        this.tokens = Counter.builder(meter("tokens"))
                .description("response tokens scored")
                .register(meters);
        this.rollouts = Counter.builder(meter("rollouts"))
                .description("rollouts scored")
                .register(meters);
        this.unavailable = Counter.builder(meter("unavailable"))
                .description("scores that lack an unavailable version")
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
        pulse.turn();
        DecoderShape shape = PolicyFeed.shapeOf(first.get());
        ScorableCheck check = new ScorableCheck(connection, first.get().getTokenizerHash(), shape);
        try (Scoring scoring = purpose == ScorerPurpose.LEARNER
                ? BatchScoring.open(connection, feed, engine, config, shape)
                : FixedScoring.open(connection, feed, engine, purpose, config, shape)) {
            boolean isOpen = log.open(() -> stopped);
            while (isOpen && !stopped) {
                if (scoring.newest() == Scoring.NOT_SERVING) {
                    pulse.turn(Optional.empty());
                } else {
                    feed.turned(pulse, scoring.newest());
                }
                ConsumerRecords<byte[], byte[]> read = read();
                List<Scorable> scorable = scorable(read, check);
                List<Score> scores = scorable.isEmpty() ? List.of() : scoring.score(scorable, clock.millis());
                Serving serving = servingIfDue(scoring.newest(), !read.isEmpty());
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

    private @Nullable Serving servingIfDue(long version, boolean isCommitting) {
        if (version == Scoring.NOT_SERVING) {
            return null; // a fixed policy serves no version
        }
        long now = clock.millis();
        long monotonic = System.nanoTime(); // the wall clock may be set back
        if (version != servedVersion) {
            servedVersion = version;
            MDC.put("version", Long.toString(version));
            servingSinceMs = now;
            hasNews = true;
        }
        long ageMs = (monotonic - lastHeartbeatNanos) / 1_000_000;
        if (!(isCommitting && hasNews) && !Pulse.needsServing(ageMs, config.heartbeatMs(), hasNews)) {
            return null;
        }
        hasNews = false;
        lastHeartbeatNanos = monotonic;
        return serving(version, now, false);
    }

    /** Names no oldest version: uncommitted rollouts lie after the group's offset, where retention finds them. */
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

    /**
     * Scores rollouts under one fixed policy: a reference, or a teacher.
     *
     * <p>Log-probs apply the rollout's temperature, over its kept tokens if policies are compared over these; masked tokens have
     * 0. A rollout longer than the policy's positions gets a score that names this.
     */
    static final class FixedScoring implements Scoring {
        private final LogConnection connection;
        private final ScorerPurpose purpose;
        private final ScorerConfig config;
        private final long version;
        private final Weights weights;
        private final ScoringSession session;

        private FixedScoring(
                LogConnection connection,
                ScorerPurpose purpose,
                ScorerConfig config,
                long version,
                Weights weights,
                ScoringSession session) {
            this.connection = connection;
            this.purpose = purpose;
            this.config = config;
            this.version = version;
            this.weights = weights;
            this.session = session;
        }

        /**
         * Loads the policy of the purpose.
         *
         * @param trained shape of the trained policy; the vocabularies must be equal
         * @throws dev.millrace.weights.VersionUnavailableException if the log does not hold the version
         * @throws IllegalStateException if there is no such checkpoint, or it has another vocabulary
         */
        static FixedScoring open(
                LogConnection connection,
                PolicyFeed feed,
                Engine engine,
                ScorerPurpose purpose,
                ScorerConfig config,
                DecoderShape trained) {
            FixedPolicyConfig policy = config.fixed(purpose);
            Weights weights = policy.version() >= 0
                    ? ofTheRun(feed, policy.version(), connection.limit(config.firstVersionTimeoutMs()))
                    : onDisk(policy.directory());
            if (weights.shape().vocabSize() != trained.vocabSize()) {
                throw new IllegalStateException("the " + purpose.role() + " policy in " + policy.directory()
                        + " has a vocabulary of "
                        + weights.shape().vocabSize() + " tokens, the policy that is trained " + trained.vocabSize()
                        + "; log-probs of the same tokens need the same vocabulary");
            }
            return new FixedScoring(
                    connection,
                    purpose,
                    config,
                    policy.version(),
                    weights,
                    new ScoringSession(engine, weights.shape(), config.tokenBudget()));
        }

        private static Weights ofTheRun(PolicyFeed feed, long version, Duration limit) {
            feed.awaitAtLeast(version, limit);
            return feed.load(version);
        }

        private static Weights onDisk(String directory) {
            try {
                return new CheckpointDirectory(Path.of(directory)).load();
            } catch (IOException e) {
                throw new IllegalStateException(
                        "the checkpoint in " + directory + " cannot be read: " + e.getMessage(), e);
            }
        }

        @Override
        public List<Score> score(List<Scorable> rollouts, long nowMs) {
            List<Scorable> fitting = rollouts.stream().filter(this::fits).toList();
            float[] logProbs = new float[0];
            SequenceBatch batch = new SequenceBatch(new int[0][], new int[0]);
            if (!fitting.isEmpty()) {
                batch = Scorable.batch(fitting);
                TokenScores scores = session.score(weights, batch, Scorable.temperatures(fitting));
                logProbs = scores.logProbs();
            }
            List<Score> records = new ArrayList<>(rollouts.size());
            int place = 0;
            for (Scorable rollout : rollouts) {
                if (fits(rollout)) {
                    int from = batch.offset(place++);
                    records.add(record(
                            rollout, Arrays.copyOfRange(logProbs, from, from + rollout.responseLength()), nowMs));
                } else {
                    records.add(tooLong(rollout, nowMs));
                }
            }
            return records;
        }

        private boolean fits(Scorable rollout) {
            return rollout.tokens().length <= weights.shape().maxPositions();
        }

        private Score record(Scorable rollout, float[] logProbs, long nowMs) {
            for (int i = 0; i < logProbs.length; i++) {
                if (rollout.mask()[i] == 0) {
                    logProbs[i] = 0f;
                }
            }
            return about(rollout, nowMs)
                    .setVectors(List.of(new LogProbVector(
                            purpose.policy(),
                            List.of(new VersionSpan(version, 0, logProbs.length)),
                            PackedFloats.of(logProbs),
                            null,
                            null,
                            null,
                            null)))
                    .setUnavailable(null)
                    .build();
        }

        private Score tooLong(Scorable rollout, long nowMs) {
            return about(rollout, nowMs)
                    .setVectors(List.of())
                    .setUnavailable("its " + rollout.tokens().length + " tokens are more than the " + purpose.role()
                            + " policy's " + weights.shape().maxPositions() + " positions")
                    .build();
        }

        private Score.Builder about(Scorable rollout, long nowMs) {
            return Score.newBuilder()
                    .setRunId(connection.run().runId())
                    .setEpoch(connection.run().epoch())
                    .setRolloutId(rollout.rollout().getRolloutId())
                    .setGroupId(rollout.rollout().getGroupId())
                    .setScorerId(config.id())
                    .setRolloutSource(
                            new LogCoordinates(connection.topics().rollouts(), rollout.partition(), rollout.offset()))
                    .setScoredAtMs(nowMs);
        }

        @Override
        public long newest() {
            return NOT_SERVING;
        }

        @Override
        public void close() {
            session.close();
        }
    }

    /**
     * Compares each generator's log-probs with the scores under the version that it names.
     *
     * <p>Counts only rollouts sampled and scored under one version: with {@code cache_on_swap: keep} log-probs lie between two
     * versions. Confined to the scoring thread.
     */
    static final class ReportedLogProbs {
        /** Most generators remembered until the next record; a longer list comes from forged ids. */
        private static final int MAX_GENERATORS = 1_000;

        private final Map<String, ComparedLogProbs> compared = new TreeMap<>();

        /** Rollouts and their scores, in the same order. */
        void add(List<Scorable> rollouts, List<Score> scores) {
            for (int i = 0; i < rollouts.size(); i++) {
                add(rollouts.get(i), scores.get(i));
            }
        }

        private void add(Scorable rollout, Score score) {
            if (rollout.rollout().getVersionSpans().size() != 1) {
                return;
            }
            for (LogProbVector vector : score.getVectors()) {
                if (vector.getPolicy() == PolicyRole.OLD) {
                    add(rollout.rollout(), rollout.mask(), vector.getLogProbs());
                }
            }
        }

        private void add(Rollout rollout, byte[] mask, ByteBuffer scored) {
            String generatorId = rollout.getGeneratorId();
            if (compared.size() >= MAX_GENERATORS && !compared.containsKey(generatorId)) {
                return;
            }
            ByteBuffer sent = ComparedDistribution.behaviorLogProbs(rollout);
            long tokens = 0;
            double absolute = 0;
            double squared = 0;
            double sum = 0;
            double sumSquared = 0;
            for (int t = 0; t < mask.length; t++) {
                double ours = PackedFloats.get(scored, t);
                double difference = PackedFloats.get(sent, t) - ours;
                if (mask[t] == 1 && Double.isFinite(difference)) {
                    tokens++;
                    absolute += Math.abs(difference);
                    squared += difference * difference;
                    sum += ours;
                    sumSquared += ours * ours;
                }
            }
            compared.merge(
                    generatorId,
                    new ComparedLogProbs(generatorId, tokens, absolute, squared, sum, sumSquared),
                    ReportedLogProbs::together);
        }

        private static ComparedLogProbs together(ComparedLogProbs a, ComparedLogProbs b) {
            return new ComparedLogProbs(
                    a.getGeneratorId(),
                    a.getTokens() + b.getTokens(),
                    a.getSumAbsolute() + b.getSumAbsolute(),
                    a.getSumSquared() + b.getSumSquared(),
                    a.getSumScored() + b.getSumScored(),
                    a.getSumSquaredScored() + b.getSumSquaredScored());
        }

        /** Comparisons since the last {@link #written}. */
        List<ComparedLogProbs> unwritten() {
            return List.copyOf(compared.values());
        }

        void written() {
            compared.clear();
        }
    }

    /**
     * Accepts a record of the rollouts topic, or gives the reason why it cannot be scored.
     *
     * <p>Rollouts are held to the same rules as in the topology, with the policy's own vocabulary and positions; limits that
     * a topology may set lower, on rewards and groups, are the topology's.
     */
    static final class ScorableCheck {
        private final Deserializer<Rollout> rollouts;
        private final RolloutValidator validator;
        private final DecoderShape shape;

        ScorableCheck(LogConnection connection, String tokenizerHash, DecoderShape shape) {
            this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
            this.shape = shape;
            this.validator = new RolloutValidator(
                    connection.run(),
                    new RolloutLimits(
                            tokenizerHash,
                            shape.vocabSize(),
                            shape.maxPositions(),
                            RolloutLimits.LARGEST_GROUP,
                            RolloutLimits.LARGEST_REWARD));
        }

        RolloutReading read(ConsumerRecord<byte[], byte[]> record) {
            try {
                Rollout rollout = rollouts.deserialize(record.topic(), record.value());
                return rollout == null
                        ? new Skipped(RefusalReason.UNREADABLE.code(), "the record has no value")
                        : read(record, rollout);
            } catch (MalformedRecordException e) {
                return new Skipped(RefusalReason.UNREADABLE.code(), String.valueOf(e.getMessage()));
            } catch (RefusedException e) {
                return new Skipped(e.refusal().reason().code(), e.refusal().message());
            }
        }

        private RolloutReading read(ConsumerRecord<byte[], byte[]> record, Rollout rollout) throws RefusedException {
            validator.validate(rollout, record.key());
            if (rollout.getImages() != null && !rollout.getImages().isEmpty()) {
                return new Skipped(
                        RefusalReason.UNSUPPORTED.code(),
                        "it has " + rollout.getImages().size()
                                + " images in its context, which the engine does not see");
            }
            int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
            int[] response = PackedInts.toArray(rollout.getResponseTokens());
            int[] tokens = Arrays.copyOf(prompt, prompt.length + response.length);
            System.arraycopy(response, 0, tokens, prompt.length, response.length);
            RoutedExperts routing;
            try {
                routing = routing(rollout);
            } catch (IllegalArgumentException e) {
                return new Skipped(RefusalReason.SAMPLING.code(), String.valueOf(e.getMessage()));
            }
            KeptSupport kept = ComparedDistribution.keptTokens(rollout);
            return new Scorable(
                    rollout,
                    record.partition(),
                    record.offset(),
                    tokens,
                    prompt.length,
                    PackedMask.toArray(rollout.getMask()),
                    (float) rollout.getSampling().getTemperature(),
                    kept == null
                            ? null
                            : new SampledSupport(
                                    ComparedDistribution.keptCounts(kept, rollout.getMask()),
                                    PackedInts.toArray(kept.getTokenIds())),
                    routing);
        }

        /** @throws IllegalArgumentException if it is not one of the policy's model */
        private @Nullable RoutedExperts routing(Rollout rollout) {
            RecordedRouting recorded = ComparedDistribution.routing(rollout);
            if (recorded == null) {
                return null;
            }
            RoutedExperts routing = RoutedExperts.of(
                    recorded.getLayers(), recorded.getExpertsPerToken(), recorded.getExperts(), recorded.getWeights());
            routing.require(shape, "rollout " + rollout.getRolloutId());
            return routing;
        }
    }
}
