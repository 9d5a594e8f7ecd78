package dev.millrace.runtime.evaluation;

import dev.millrace.log.Alarms;
import dev.millrace.log.EvaluationLog;
import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.log.transaction.TakenOverException;
import dev.millrace.log.transaction.TransactionalWriter;
import dev.millrace.policy.session.Engine;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.run.EvaluationKey;
import dev.millrace.schemas.run.ServerKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.Serializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The evaluator role: follows the run's versions, samples held-out prompts with those that are due, and writes one
 * record per version to the topic {@code evaluations}. All tokens of an evaluation come from one version. One per run;
 * a second one takes over.
 *
 * <p>When it falls behind it continues with the newest due version; the record and a meter count the skipped ones.
 * After a kill it repeats the interrupted evaluation and never writes a second record of a finished one.
 *
 * <p>{@link #run} and then {@link #evaluateLast} belong to one thread at a time; the rest may be called by any. Meters: {@code
 * millrace.evaluator.tokens}, {@code .idle.seconds}, {@code .evaluations}, {@code .passed.over.versions}, {@code .failed.responses},
 * {@code millrace.policy.version} of the role, and every figure of the newest evaluation.
 */
public final class Evaluator implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Evaluator.class);
    private static final Duration LOOK_AGAIN = Duration.ofMillis(200);

    private final PolicyFeed feed;
    private final Duration firstVersionLimit;
    private final HeldOutTrial trial;
    private final EvaluationSchedule schedule;
    private final EvaluationJournal journal;
    private final EvaluationOutputs outputs;
    private final Counter tokens;
    private final Counter idle;
    private final Counter made;
    private final Counter passedOver;
    private final Counter failed;
    private final Alarms alarms;
    private final Pulse pulse;
    private volatile long evaluating = -1;
    private volatile boolean takenOver;
    private volatile boolean stopped;

    /** @param feed of the run; stays the caller's */
    public Evaluator(
            MillraceConfig config,
            LogConnection connection,
            PolicyFeed feed,
            Engine engine,
            MeterRegistry meters,
            Clock clock) {
        this.feed = feed;
        this.alarms = connection.alarms();
        this.pulse = alarms.begin(EvaluationJournal.ROLE);
        this.firstVersionLimit = connection.limit(config.weights().readTimeoutMs());
        this.trial = new HeldOutTrial(connection.run(), config, config.task(), config.evaluation(), engine, clock);
        this.schedule =
                new EvaluationSchedule(config.evaluation(), config.learner().maxSteps());
        this.journal = new EvaluationJournal(connection, clock);
        this.outputs = new EvaluationOutputs(config.metrics(), connection, meters, trial.dataSha256());
        this.tokens = Counter.builder("millrace.evaluator.tokens")
                .description("tokens of evaluations that the policy wrote")
                .register(meters);
        this.idle = Counter.builder("millrace.evaluator.idle.seconds")
                .description("time without a version to evaluate")
                .register(meters);
        this.made = Counter.builder("millrace.evaluator.evaluations")
                .description("versions evaluated on held-out prompts")
                .register(meters);
        this.passedOver = Counter.builder("millrace.evaluator.passed.over.versions")
                .description(
                        "due versions that were skipped, because evaluation was behind or their weights were not available")
                .register(meters);
        this.failed = Counter.builder("millrace.evaluator.failed.responses")
                .description("responses to held-out prompts that could not be judged")
                .register(meters);
        Gauge.builder("millrace.policy.version", this, it -> it.evaluating)
                .tag("role", EvaluationJournal.ROLE)
                .register(meters);
    }

    /** All comparable evaluations so far, by version. */
    public Evaluations evaluations() {
        return journal.log().evaluations();
    }

    /**
     * Evaluates due versions until it is stopped.
     *
     * @throws VersionUnavailableException if no version is published in time
     * @throws TakenOverException if another evaluator has taken over
     */
    public void run() {
        Optional<PolicyVersion> first = feed.awaitFirst(firstVersionLimit, () -> stopped);
        if (first.isEmpty() || !journal.open(() -> stopped)) {
            return;
        }
        outputs.show(evaluations());
        try {
            follow();
        } catch (TakenOverException e) {
            takenOver = true;
            throw e;
        } finally {
            alarms.end(EvaluationJournal.ROLE);
        }
    }

    private void follow() {
        while (!stopped) {
            pulse.turn(Optional.empty());
            long newest = feed.newest().orElseThrow().getVersion();
            schedule.next(journal.log().newestOf(trial.dataSha256(), newest), newest, System.nanoTime())
                    .ifPresentOrElse(due -> evaluate(due, () -> stopped), () -> await(newest));
        }
        journal.left(() -> true);
    }

    private void await(long newest) {
        long from = System.nanoTime();
        feed.awaitNewerThan(newest, LOOK_AGAIN);
        idle.increment((System.nanoTime() - from) / 1e9);
    }

    /**
     * Evaluates the newest version after {@link #run} has ended, unless that is done or another evaluator has taken
     * over.
     *
     * @param givenUp polled; true ends it
     */
    public void evaluateLast(BooleanSupplier givenUp) {
        if (!journal.isOpen() || takenOver) {
            return;
        }
        long newest = feed.newestCommitted().orElseThrow().getVersion();
        OptionalLong last = journal.log().newestOf(trial.dataSha256(), newest);
        if (last.isEmpty() || last.getAsLong() < newest) {
            evaluate(new EvaluationSchedule.Due(newest, 0), givenUp);
            journal.left(givenUp);
        }
    }

    /** Ends {@link #run} and discards its unfinished evaluation. */
    public void stop() {
        stopped = true;
    }

    private void evaluate(EvaluationSchedule.Due due, BooleanSupplier givenUp) {
        schedule.took(due.version(), System.nanoTime());
        if (due.passedOver() > 0) {
            passedOver.increment(due.passedOver());
            LOG.info(
                    "evaluation is behind: version {} is next; skips {} due versions before it",
                    due.version(),
                    due.passedOver());
        }
        try {
            evaluating = due.version();
            journal.evaluating(due.version(), givenUp); // first: the version being read must not be removed
            VersionEvaluation evaluation =
                    trial.of(HeldOutTrial.Versions.of(feed), due.version(), due.passedOver(), () -> {
                        pulse.turn();
                        if (givenUp.getAsBoolean()) {
                            throw new CancellationException(
                                    "the evaluation of version " + due.version() + " was stopped");
                        }
                        journal.evaluating(due.version(), givenUp);
                    });
            tokens.increment(EvaluationRecords.tokens(evaluation));
            failed.increment(evaluation.getFailed());
            if (journal.write(evaluation, givenUp)) {
                made.increment();
                outputs.show(evaluations());
            }
        } catch (VersionUnavailableException
                | CorruptVersionException
                | UnjudgedException e) { // the run does not need this number
            passedOver.increment();
            LOG.warn("version {} is not evaluated: {}", due.version(), e.getMessage());
        } catch (CancellationException e) {
            if (!givenUp.getAsBoolean()) {
                throw e;
            }
        }
    }

    @Override
    public void close() {
        outputs.close();
        journal.close();
    }

    /**
     * The evaluator's log access: earlier evaluations, each once, and the version under evaluation, which the learner
     * keeps meanwhile.
     *
     * <p>{@link #open} fences an older holder of the id before it reads. So no other evaluator can be active, and
     * records committed before a kill are found. Owned by one thread at a time.
     */
    static final class EvaluationJournal implements AutoCloseable {
        static final String ROLE = "evaluator";
        private static final int TRANSACTION_TIMEOUT_MS = 30_000;
        private static final Duration READ_LIMIT = Duration.ofSeconds(30);
        private static final long HEARTBEAT_NANOS = Duration.ofSeconds(2).toNanos();

        private final LogConnection connection;
        private final Clock clock;
        private final EvaluationLog log;
        private final TransactionalWriter writer;
        private final Serializer<VersionEvaluation> evaluations;
        private final Serializer<Serving> servings;
        private boolean open;
        private OptionalLong served = OptionalLong.empty();
        private long servedSinceMs;
        private long heardNanos;
        private long tokens;

        EvaluationJournal(LogConnection connection, Clock clock) {
            this.connection = connection;
            this.clock = clock;
            this.evaluations =
                    AvroSerde.of(VersionEvaluation.class, connection.registry()).serializer();
            this.servings = AvroSerde.of(Serving.class, connection.registry()).serializer();
            this.log = new EvaluationLog(connection);
            this.writer = TransactionalWriter.of(
                    connection, connection.scoped(ROLE), TRANSACTION_TIMEOUT_MS, Map.of("client.id", ROLE));
        }

        /**
         * Fences an older holder of the id and reads the evaluations.
         *
         * @return false if it was stopped before that
         */
        boolean open(BooleanSupplier stopped) {
            open = writer.takeOver(stopped, this::catchUp);
            return open;
        }

        boolean isOpen() {
            return open;
        }

        private void catchUp() {
            if (!log.update(READ_LIMIT)) {
                throw new TimeoutException("topic " + connection.topics().evaluations()
                        + " could not be read to its end within " + READ_LIMIT.toSeconds() + " s");
            }
        }

        EvaluationLog log() {
            return log;
        }

        /**
         * Announces the version under evaluation, once and then every few seconds, so that it is kept.
         *
         * @param stopped gives up attempts that fail
         */
        void evaluating(long version, BooleanSupplier stopped) {
            boolean isNew = served.isEmpty() || served.getAsLong() != version;
            if (!isNew && System.nanoTime() - heardNanos < HEARTBEAT_NANOS) {
                return;
            }
            if (isNew) {
                served = OptionalLong.of(version);
                servedSinceMs = clock.millis();
            }
            heardNanos = System.nanoTime();
            send(serving(version, false), stopped);
        }

        /** Announces that no version is needed. */
        void left(BooleanSupplier stopped) {
            if (served.isPresent()) {
                send(serving(served.getAsLong(), true), stopped);
                served = OptionalLong.empty();
            }
        }

        /**
         * Writes an evaluation unless it exists.
         *
         * @return false if it was stopped before it could be written
         */
        boolean write(VersionEvaluation evaluation, BooleanSupplier stopped) {
            String topic = connection.topics().evaluations();
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                    topic, 0, EvaluationKey.of(evaluation).bytes(), evaluations.serialize(topic, evaluation));
            tokens += EvaluationRecords.tokens(evaluation);
            while (!log.has(evaluation)) {
                if (send(record, stopped)) {
                    awaitRead(evaluation); // a commit is acknowledged before readers see it
                } else if (stopped.getAsBoolean()) {
                    return log.has(evaluation);
                }
            }
            return true;
        }

        private void awaitRead(VersionEvaluation evaluation) {
            long since = System.nanoTime();
            while (!log.has(evaluation)) {
                catchUp();
                if (System.nanoTime() - since > READ_LIMIT.toNanos()) {
                    throw new TimeoutException("the evaluation of version " + evaluation.getVersion()
                            + " is committed but could not be read within " + READ_LIMIT.toSeconds() + " s");
                }
            }
        }

        /** @return false if it may be missing; the caller then reads the log */
        private boolean send(ProducerRecord<byte[], byte[]> record, BooleanSupplier stopped) {
            try {
                writer.write(out -> out.send(record));
                return true;
            } catch (RuntimeException e) {
                writer.recover(e, stopped, this::catchUp);
                return false;
            }
        }

        private ProducerRecord<byte[], byte[]> serving(long version, boolean left) {
            String topic = connection.topics().serving();
            Serving serving = new Serving(
                    connection.run().runId(),
                    connection.run().epoch(),
                    ROLE,
                    ServerRole.EVALUATOR,
                    connection.run().policyId(),
                    version,
                    servedSinceMs,
                    clock.millis(),
                    tokens,
                    null,
                    left,
                    new EngineIdentity("onnxruntime", Engine.runtimeVersion(), "float32", null),
                    List.of(),
                    null);
            return new ProducerRecord<>(topic, ServerKey.of(serving), servings.serialize(topic, serving));
        }

        @Override
        public void close() {
            writer.close();
            log.close();
        }
    }
}
