package dev.millrace.runtime.report;

import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.generator.sampling.VersionedSample;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.NonFiniteScoreException;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.retrain.FreshRollouts.RolloutSource;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.packed.PackedInts;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Optional;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Samples a recorded run's prompts in this process with the generator's engine and the run's environments. Owned by one
 * thread.
 */
public final class RunRollouts implements RolloutSource, AutoCloseable {
    private static final Clock NO_TIME = Clock.fixed(Instant.EPOCH, ZoneOffset.UTC);

    private final GeneratorConfig config;
    private final DecoderShape shape;
    private final Engine engine;
    private final Environments environments;
    private @Nullable RolloutSampler sampler;

    public RunRollouts(MillraceConfig config, DecoderShape shape, Engine engine) {
        this.config = config.generator();
        this.environments = config.served();
        this.shape = shape;
        this.engine = engine;
    }

    @Override
    public Optional<String> refusal(PromptRequest request) {
        try {
            environments.playing(request).requirePlayable(request.getEnvironmentState());
        } catch (IllegalArgumentException e) {
            return Optional.of(
                    e.getMessage() + "; another program's environment is not available here, so leave out --live");
        }
        int prompt = PackedInts.length(request.getPromptTokens());
        long needed = (long) prompt + request.getSampling().getMaxTokens();
        return needed <= config.capacityTokens()
                ? Optional.empty()
                : Optional.of("its prompt of " + prompt + " tokens and max_tokens="
                        + request.getSampling().getMaxTokens() + " need " + needed
                        + " positions, and generator.capacity_tokens is " + config.capacityTokens()
                        + "; give the run's configuration with --config");
    }

    @Override
    public List<Rollout> sample(List<Sample> samples, LongFunction<Weights> weights) {
        if (sampler == null) {
            sampler = new RolloutSampler(
                    engine,
                    shape,
                    environments,
                    config.withSlots(slots(samples.size()), config.capacityTokens(), config.tokensPerCall()),
                    NO_TIME);
        }
        try {
            return JudgedRollouts.require(sampler.sample(
                    samples.stream()
                            .map(sample -> new VersionedSample(sample.request(), sample.index(), sample.versions()))
                            .toList(),
                    weights));
        } catch (NonFiniteScoreException e) {
            close(); // the contents of its slots cannot be reused
            throw e;
        }
    }

    /** As many slots as a batch needs. A single slot rounds differently, so one is used only if the run uses one. */
    private int slots(int samples) {
        return Math.min(config.slots(), Math.max(2, samples));
    }

    @Override
    public void close() {
        if (sampler != null) {
            sampler.close();
            sampler = null;
        }
    }
}
