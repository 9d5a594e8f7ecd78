package dev.millrace.runtime.evaluation;

import dev.millrace.api.environment.TaskSettings;
import dev.millrace.corrections.diagnostics.PromptCounts;
import dev.millrace.generator.sampling.CounterBasedRandom;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.generator.sampling.VersionedSample;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.config.EvaluationConfig;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Evaluates a version on held-out prompts with the run's sampling, on this process's engine.
 *
 * <p>Prompts are the same for every version. Draws are those of the run's seed, the version, the prompt and the sample:
 * the same version always gives the same tokens on the same kind of machine. Owned by one thread at a time.
 */
public final class HeldOutTrial {
    private static final Logger LOG = LoggerFactory.getLogger(HeldOutTrial.class);
    private static final Clock NO_TIME = Clock.fixed(Instant.EPOCH, ZoneOffset.UTC);
    private static final long PROMPT_SEED = Long.MIN_VALUE;
    private static final String SERIES = "evaluate";

    private final RunIdentity run;
    private final MillraceConfig config;
    private final EvaluationConfig asked;
    private final HeldOutPrompts prompts;
    private final Engine engine;
    private final Clock clock;
    private final int count;
    private final String dataSha256;

    /**
     * @param held the run's task; its held-out prompts may differ from the run's
     * @param asked prompts, samples and what is correct
     */
    public HeldOutTrial(
            RunIdentity run,
            MillraceConfig config,
            TaskSettings held,
            EvaluationConfig asked,
            Engine engine,
            Clock clock) {
        this.run = run;
        this.config = config;
        this.asked = asked;
        this.engine = engine;
        this.clock = clock;
        this.prompts = new HeldOutPrompts(run, config, held);
        this.count = prompts.count(asked.prompts());
        this.dataSha256 = HeldOutPrompts.sha256(prompts.requests(PROMPT_SEED, SERIES, count, 1));
    }

    public String dataSha256() {
        return dataSha256;
    }

    /** Source of versions: metadata and weights. */
    public record Versions(LongFunction<PolicyVersion> manifests, LongFunction<Weights> weights) {
        /** Those of a run's log. */
        public static Versions of(PolicyFeed feed) {
            return new Versions(feed::manifest, feed::load);
        }
    }

    /**
     * Tries one.
     *
     * @param passedOver skipped earlier due versions
     * @param goesOn called repeatedly; its exception ends the trial
     * @throws VersionUnavailableException if its weights cannot be loaded
     * @throws UnjudgedException if no response could be judged
     */
    public VersionEvaluation of(Versions versions, long version, long passedOver, Runnable goesOn) {
        PolicyVersion manifest = versions.manifests().apply(version);
        return of(
                VersionKey.of(manifest),
                manifest.getWeights().getSha256(),
                versions.weights().apply(version),
                () -> start(versions),
                passedOver,
                goesOn);
    }

    /** Initial checkpoint of a policy; empty if it is no longer known, or the policy began with random weights. */
    private Optional<Weights> start(Versions versions) {
        if (config.model().checkpoint().isEmpty()) {
            return Optional.empty();
        }
        try {
            return Optional.of(versions.weights().apply(0));
        } catch (VersionUnavailableException e) {
            LOG.warn("version 0 cannot be compared with: {}", e.getMessage());
            return Optional.empty();
        }
    }

    /**
     * Evaluates weights in memory.
     *
     * @param start weights to score the text with afterwards; empty for none
     */
    VersionEvaluation of(
            VersionKey key,
            String weightsSha256,
            Weights weights,
            Supplier<Optional<Weights>> start,
            long passedOver,
            Runnable goesOn) {
        long version = key.version();
        long startedAtMs = clock.millis();
        List<PromptRequest> requests = requests(version);
        List<Rollout> all = sampled(requests, weights, version, goesOn);
        List<Rollout> judged = all.stream()
                .filter(rollout -> rollout.getFinishReason() != FinishReason.FAILED)
                .toList();
        String why = all.stream()
                .filter(rollout -> rollout.getFinishReason() == FinishReason.FAILED)
                .findFirst()
                .map(Rollout::getError)
                .orElse("");
        if (judged.isEmpty()) {
            throw new UnjudgedException("none of " + all.size() + " responses to held-out prompts under version "
                    + version + " could be judged: " + why);
        }
        if (judged.size() < all.size()) {
            LOG.warn(
                    "{} of {} responses to held-out prompts under version {} could not be judged and are left out: {}",
                    all.size() - judged.size(),
                    all.size(),
                    version,
                    why);
        }
        VersionEvaluation.Builder record = VersionEvaluation.newBuilder()
                .setRunId(run.runId())
                .setEpoch(key.epoch())
                .setPolicyId(key.policyId())
                .setVersion(version)
                .setWeightsSha256(weightsSha256)
                .setDataSha256(dataSha256)
                .setSamplesPerPrompt(asked.samples())
                .setSampling(requests.get(0).getSampling())
                .setCorrectAbove(asked.correctAbove())
                .setStartLogProb(
                        start.get().map(first -> meanLogProb(judged, first)).orElse(null))
                .setFailed(all.size() - judged.size())
                .setPassedOver(passedOver)
                .setStartedAtMs(startedAtMs)
                .setFinishedAtMs(clock.millis());
        return EvaluationRecords.fill(record, counts(all)).build();
    }

    private List<PromptRequest> requests(long version) {
        long draws = CounterBasedRandom.stream(config.run().seed(), version, 0);
        return prompts.requests(PROMPT_SEED, draws, SERIES, count, asked.samples());
    }

    private List<Rollout> sampled(List<PromptRequest> requests, Weights weights, long version, Runnable goesOn) {
        List<VersionedSample> samples = requests.stream()
                .flatMap(request -> IntStream.range(0, asked.samples())
                        .mapToObj(
                                index -> new VersionedSample(request, index, List.of(new VersionSpan(version, 0, 1)))))
                .toList();
        try (RolloutSampler sampler =
                new RolloutSampler(engine, weights.shape(), config.served(), config.generator(), NO_TIME)) {
            return sampler.sample(samples, any -> {
                goesOn.run();
                return weights;
            });
        }
    }

    /** @param all grouped by prompt, with the requested number of samples each */
    private List<PromptCounts> counts(List<Rollout> all) {
        List<PromptCounts> counts = new ArrayList<>();
        for (int first = 0; first < all.size(); first += asked.samples()) {
            List<Rollout> judged = all.subList(first, first + asked.samples()).stream()
                    .filter(rollout -> rollout.getFinishReason() != FinishReason.FAILED)
                    .toList();
            counts.add(new PromptCounts(
                    judged.size(),
                    (int) judged.stream()
                            .filter(rollout -> rollout.getReward() > asked.correctAbove())
                            .count(),
                    judged.stream().mapToDouble(Rollout::getReward).sum(),
                    judged.stream()
                            .mapToLong(rollout -> PackedMask.count(rollout.getMask()))
                            .sum(),
                    (int) judged.stream()
                            .filter(rollout -> rollout.getFinishReason() == FinishReason.LENGTH)
                            .count()));
        }
        return counts;
    }

    /** Over the tokens that the policy wrote; null without one. */
    private @Nullable Double meanLogProb(List<Rollout> rollouts, Weights weights) {
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
        float[] logProbs;
        try (ScoringSession scoring = new ScoringSession(
                engine, weights.shape(), config.learner().step().tokensPerMicrobatch())) {
            logProbs = scoring.score(weights, new SequenceBatch(sequences, firstScored), temperatures)
                    .logProbs();
        }
        double sum = 0;
        long written = 0;
        int at = 0;
        for (int s = 0; s < sequences.length; s++) {
            byte[] mask = new byte[sequences[s].length - firstScored[s]];
            PackedMask.copyTo(rollouts.get(s).getMask(), mask, 0);
            for (byte byPolicy : mask) {
                sum += byPolicy * (double) logProbs[at++];
                written += byPolicy;
            }
        }
        return written == 0 ? null : sum / written;
    }
}
