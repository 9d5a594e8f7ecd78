package dev.millrace.runtime.evaluation;

import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.generator.sampling.VersionedSample;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Evaluates version 0 and then one in so many, as they are published, sampled as the run samples.
 *
 * <p>{@link #run} and then {@link #evaluateLast} belong to one thread at a time; the rest may be called by any. Takes no part in the run.
 */
public final class Evaluator {
    private static final Logger LOG = LoggerFactory.getLogger(Evaluator.class);
    private static final Clock NO_TIME = Clock.fixed(Instant.EPOCH, ZoneOffset.UTC);
    private static final Duration LOOK_AGAIN = Duration.ofMillis(200);
    private static final long SEED = Long.MIN_VALUE;

    private final MillraceConfig config;
    private final PolicyFeed feed;
    private final Engine engine;
    private final HeldOutPrompts prompts;
    private final Duration firstVersionLimit;
    private final List<EvaluatedVersion> evaluations;
    private volatile boolean stopped;

    /**
     * @param feed of the run; stays the caller's
     * @param before what was evaluated before this process
     */
    public Evaluator(
            MillraceConfig config,
            LogConnection connection,
            PolicyFeed feed,
            Engine engine,
            List<EvaluatedVersion> before) {
        this.config = config;
        this.feed = feed;
        this.engine = engine;
        this.prompts = new HeldOutPrompts(connection.run(), config);
        this.firstVersionLimit = connection.limit(config.weights().readTimeoutMs());
        this.evaluations = new CopyOnWriteArrayList<>(before);
    }

    /** All so far, by version. */
    public List<EvaluatedVersion> evaluations() {
        return evaluations;
    }

    /** Evaluates whatever is due until it is stopped. */
    public void run() {
        int every = config.evaluation().everySteps();
        Optional<PolicyVersion> first = feed.awaitFirst(firstVersionLimit, () -> stopped);
        first.ifPresent(newest -> evaluations.removeIf(done -> done.version() > newest.getVersion())); // rolled back
        long due = evaluations.isEmpty() ? 0 : (newestEvaluated() / every + 1) * every;
        while (!stopped) {
            Optional<PolicyVersion> newest = feed.awaitNewerThan(due - 1, LOOK_AGAIN);
            if (newest.isPresent()) {
                evaluate(due, () -> stopped);
                due += every;
            }
        }
    }

    /**
     * Evaluates the newest version, unless it was; after {@link #run} has returned.
     *
     * @param givenUp looked at again and again; true ends it
     */
    public void evaluateLast(BooleanSupplier givenUp) {
        feed.newestCommitted()
                .map(PolicyVersion::getVersion)
                .filter(version -> evaluations.stream().noneMatch(done -> done.version() == version))
                .ifPresent(version -> evaluate(version, givenUp));
    }

    /** Ends {@link #run}, and its evaluation that goes on; what is half evaluated is no evaluation. */
    public void stop() {
        stopped = true;
    }

    private long newestEvaluated() {
        return evaluations.get(evaluations.size() - 1).version();
    }

    private void evaluate(long version, BooleanSupplier givenUp) {
        try {
            evaluated(version, givenUp).ifPresent(evaluations::add);
        } catch (VersionUnavailableException e) { // the run goes on without a number that it does not need
            LOG.warn("version {} is not evaluated: {}", version, e.getMessage());
        } catch (CancellationException e) {
            if (!givenUp.getAsBoolean()) {
                throw e;
            }
        }
    }

    /** Of those responses that could be judged; empty if none could. */
    private Optional<EvaluatedVersion> evaluated(long version, BooleanSupplier givenUp) {
        Weights weights = feed.load(version);
        List<Rollout> all = sampled(weights, version, givenUp);
        List<Rollout> rollouts = all.stream()
                .filter(rollout -> rollout.getFinishReason() != FinishReason.FAILED)
                .toList();
        all.stream()
                .filter(rollout -> rollout.getFinishReason() == FinishReason.FAILED)
                .findFirst()
                .ifPresent(failed -> LOG.warn(
                        "{} of {} responses to held-out prompts under version {} could not be judged and are left out: {}",
                        all.size() - rollouts.size(),
                        all.size(),
                        version,
                        failed.getError()));
        if (rollouts.isEmpty()) {
            return Optional.empty();
        }
        long tokens = rollouts.stream()
                .mapToLong(rollout -> PackedMask.count(rollout.getMask()))
                .sum();
        return Optional.of(new EvaluatedVersion(
                version,
                rollouts.stream().mapToDouble(Rollout::getReward).average().orElseThrow(),
                config.model().checkpoint().isEmpty() ? Double.NaN : startLogProb(rollouts, weights, version),
                rollouts.size(),
                tokens));
    }

    private List<Rollout> sampled(Weights weights, long version, BooleanSupplier givenUp) {
        List<PromptRequest> requests =
                prompts.requests(SEED, "evaluate", config.evaluation().responses(), 1);
        List<VersionedSample> samples = requests.stream()
                .map(request -> new VersionedSample(request, 0, List.of(new VersionSpan(version, 0, 1))))
                .toList();
        try (RolloutSampler sampler =
                new RolloutSampler(engine, weights.shape(), config.served(), config.generator(), NO_TIME)) {
            return sampler.sample(samples, any -> {
                if (givenUp.getAsBoolean()) {
                    throw new CancellationException("the evaluation of version " + version + " was stopped");
                }
                return weights;
            });
        }
    }

    private double startLogProb(List<Rollout> rollouts, Weights weights, long version) {
        try {
            return meanLogProb(rollouts, version == 0 ? weights : feed.load(0));
        } catch (VersionUnavailableException e) {
            LOG.warn("version 0 cannot be compared with: {}", e.getMessage());
            return Double.NaN;
        }
    }

    /** Over the tokens that the policy wrote. */
    private double meanLogProb(List<Rollout> rollouts, Weights weights) {
        int[][] sequences = new int[rollouts.size()][];
        int[] firstScored = new int[sequences.length];
        for (int s = 0; s < sequences.length; s++) {
            int[] prompt = PackedInts.toArray(rollouts.get(s).getPromptTokens());
            int[] response = PackedInts.toArray(rollouts.get(s).getResponseTokens());
            sequences[s] = Arrays.copyOf(prompt, prompt.length + response.length);
            System.arraycopy(response, 0, sequences[s], prompt.length, response.length);
            firstScored[s] = prompt.length;
        }
        float[] temperatures = new float[sequences.length];
        Arrays.fill(temperatures, 1);
        DecoderShape shape = weights.shape();
        float[] logProbs;
        try (ScoringSession scoring =
                new ScoringSession(engine, shape, config.learner().step().tokensPerMicrobatch())) {
            logProbs = scoring.score(weights, new SequenceBatch(sequences, firstScored), temperatures)
                    .logProbs();
        }
        double sum = 0;
        long count = 0;
        int at = 0;
        for (int s = 0; s < sequences.length; s++) {
            byte[] mask = new byte[sequences[s].length - firstScored[s]];
            PackedMask.copyTo(rollouts.get(s).getMask(), mask, 0);
            for (byte byPolicy : mask) {
                sum += byPolicy * (double) logProbs[at++];
                count += byPolicy;
            }
        }
        return count == 0 ? Double.NaN : sum / count;
    }
}
