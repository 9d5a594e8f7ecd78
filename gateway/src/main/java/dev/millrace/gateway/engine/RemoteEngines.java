package dev.millrace.gateway.engine;

import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.NewestWeights;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Opens another program's engine as a configuration names it. */
public final class RemoteEngines {
    private RemoteEngines() {}

    /**
     * What answers.
     *
     * @param run whose versions are followed
     * @param checkpoint whose config and tokenizer are put beside each version; empty for none
     * @param own what the other engine's log-probs are compared with
     * @throws IllegalArgumentException if the configuration asks for what such an engine cannot do, or names a key that is not there
     */
    public static TurnEngine.Door door(
            EngineConfig config,
            GeneratorConfig generator,
            RunIdentity run,
            String checkpoint,
            Engine own,
            MeterRegistry meters,
            Clock clock) {
        config.require(generator);
        EngineHttp http = new EngineHttp(config.url(), key(config, System.getenv()));
        return (weights, shape) -> new RemoteTurnEngine(
                api(config, http, config.change(generator)),
                http,
                config,
                generator,
                () -> version(weights.current()),
                shape.vocabSize(),
                new VersionDirectories(
                        config, run.runId() + "-e" + run.epoch() + "-" + generator.id() + "-v", checkpoint),
                new PolicyProbe(own, shape, config, generator.capacityTokens()),
                new EngineMeters(meters),
                clock);
    }

    private static EngineWeights.Version version(NewestWeights.Loaded loaded) {
        return new EngineWeights.Version(
                loaded.version(), loaded.manifest().getWeights().getSha256(), loaded.weights());
    }

    static EngineApi api(EngineConfig config, EngineHttp http, WeightChange change) {
        return switch (config.kind()) {
            case VLLM -> new VllmApi(http, config, change);
            case SGLANG -> new SglangApi(http, config);
            case OWN -> throw new IllegalArgumentException("kind must be vllm or sglang: own");
        };
    }

    static @Nullable String key(EngineConfig config, Map<String, String> environment) {
        if (config.keyVariable().isEmpty()) {
            return null;
        }
        String key = environment.getOrDefault(config.keyVariable(), "");
        if (key.isEmpty()) {
            throw new IllegalArgumentException("engine.key_variable is " + config.keyVariable()
                    + ", and there is no such variable of the environment, or it is empty; set it before the start");
        }
        return key;
    }
}
