package dev.millrace.runtime.evaluation;

import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.log.transaction.TakenOverException;
import dev.millrace.policy.session.Engine;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CancellationException;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role that evaluates: follows the run's versions, tries those that are due on held-out prompts, each at that one version from the
 * first token to the last, and writes one record of each to the topic {@code evaluations}. One per run; a second one takes over.
 *
 * <p>When it falls behind it goes on with the newest version that is due; what it passes over is in the record and a meter. Killed at any
 * moment, it begins the evaluation again that it was at, and writes no second record of one that it had written.
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
                        "versions that were due and were passed over, because evaluation was behind or they could not be had")
                .register(meters);
        this.failed = Counter.builder("millrace.evaluator.failed.responses")
                .description("responses to held-out prompts that could not be judged")
                .register(meters);
        Gauge.builder("millrace.policy.version", this, it -> it.evaluating)
                .tag("role", EvaluationJournal.ROLE)
                .register(meters);
    }

    /** All so far that can be compared, by version. */
    public Evaluations evaluations() {
        return journal.log().evaluations();
    }

    /**
     * Evaluates whatever is due until it is stopped.
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
        }
    }

    private void follow() {
        while (!stopped) {
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
     * Evaluates the newest version, unless it was, or another evaluator has taken over; after {@link #run} has ended.
     *
     * @param givenUp looked at again and again; true ends it
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

    /** Ends {@link #run}, and its evaluation that goes on; what is half evaluated is no evaluation. */
    public void stop() {
        stopped = true;
    }

    private void evaluate(EvaluationSchedule.Due due, BooleanSupplier givenUp) {
        schedule.took(due.version(), System.nanoTime());
        if (due.passedOver() > 0) {
            passedOver.increment(due.passedOver());
            LOG.info(
                    "evaluation is behind: version {} is next, and {} that were due before it are passed over",
                    due.version(),
                    due.passedOver());
        }
        try {
            evaluating = due.version();
            journal.evaluating(due.version(), givenUp); // first: what is being read is not to be removed
            VersionEvaluation evaluation =
                    trial.of(HeldOutTrial.Versions.of(feed), due.version(), due.passedOver(), () -> {
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
                | UnjudgedException e) { // the run goes on without a number that it does not need
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
}
