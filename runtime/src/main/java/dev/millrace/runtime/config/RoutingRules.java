package dev.millrace.runtime.config;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.generator.engine.EngineConfig;
import dev.millrace.generator.gateway.GatewayConfig;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.policy.decoder.DecoderShape;
import java.util.Locale;

/** What a mixture of experts asks of the rest of a run, and what asks for one. */
final class RoutingRules {
    private RoutingRules() {}

    /** @throws ConfigException naming the keys that do not go together */
    static void require(
            DecoderShape shape,
            Algorithm algorithm,
            GeneratorConfig generator,
            GatewayConfig gateway,
            EngineConfig engine) {
        RoutingReplay replay = algorithm.routingReplay();
        boolean hasExperts = shape.traits().experts().present();
        if (hasExperts && algorithm.advantage().optionalInputs().contains(StageInput.GRADIENT_NORMS)) {
            throw new ConfigException(
                    "the model is a mixture of experts and algorithm.advantage.kind is opob, whose norms of"
                            + " single gradients are not found for one; choose another advantage");
        }
        if (replay == RoutingReplay.NONE) {
            return;
        }
        String key = "algorithm.routing_replay is " + replay.name().toLowerCase(Locale.ROOT);
        if (!hasExperts) {
            throw new ConfigException(
                    key + ", and the model has no experts whose choice could be replayed; leave the key out, or"
                            + " give a model with experts");
        }
        if (replay == RoutingReplay.GENERATOR) {
            if (engine.isRemote()) {
                throw new ConfigException(
                        key + " and engine.kind is another program's engine, of whose answers no routing is recorded;"
                                + " choose routing_replay=none or learner, or leave engine.kind out");
            }
            if (gateway.enabled()) {
                throw new ConfigException(
                        key + " and gateway.enabled is true, and of the answers that agents ask for no"
                                + " routing is recorded; choose routing_replay=none or learner, or leave the gateway out");
            }
            generator.twoRoutings().ifPresent(why -> {
                throw new ConfigException(key + ": " + why);
            });
        }
    }
}
