package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import dev.millrace.corrections.rollout.WeightRule;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Bypass mode: the behavior policy stands in for the old one, and everything between it and the current policy is
 * corrected at once, inside the update.
 *
 * <p>Rejection is decided from current over behavior, anew at every step. Then either PPO's clip with the behavior
 * policy as anchor, whose ratio is the correction, so that no weight is applied; or REINFORCE under explicit weights
 * {@code ℓ = −sg[w] A log π}. One forward pass of the learner is saved, and the trust region is measured from a policy
 * that the update cannot tell from an engine's error.
 *
 * <p>Unit of correction: token for the clip, that of the weights for REINFORCE. Needs behavior log-probs; refuses
 * weights in the input, which would correct twice, and a batch of which the rejection leaves nothing, unless the
 * aggregation knows the whole batch. Metrics: those of the loss and of the correction.
 *
 * <p>Source: verl {@code bypass_mode}.
 */
public final class BypassMode implements Objective {
    private final RolloutCorrectionConfig config;
    private final Objective loss;

    /**
     * @param config weights and rejections; its mode says which loss
     * @param range of the clip; not looked at by REINFORCE
     * @param dualClip of the clip; not looked at by REINFORCE
     * @throws IllegalArgumentException if the configuration is a decoupled one
     */
    public BypassMode(RolloutCorrectionConfig config, ClipRange range, double dualClip, LossAggregation aggregation) {
        this.config = config;
        this.loss = switch (config.mode()) {
            case BYPASS_PPO_CLIP -> new PpoClip(range, dualClip, aggregation);
            case BYPASS_REINFORCE -> new PolicyGradient(aggregation);
            case DECOUPLED ->
                throw new IllegalArgumentException("a decoupled correction keeps old and behavior apart:"
                        + " set bypass_mode=true, or use PPO clip with the correction's mask and weights");
        };
    }

    @Override
    public CorrectionUnit unit() {
        boolean bySequence = config.mode() == ObjectiveMode.BYPASS_REINFORCE
                && config.weights()
                        .map(rule -> rule.level() == WeightRule.Level.SEQUENCE)
                        .orElse(false);
        return bySequence ? CorrectionUnit.SEQUENCE : CorrectionUnit.TOKEN;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        float[] behavior = input.requireBehavior("bypass mode");
        if (input.hasWeights()) {
            throw new IllegalArgumentException(
                    "bypass mode makes its own weights: importance weights in the input" + " would correct twice");
        }
        RolloutCorrectionResult correction =
                new RolloutCorrection(config).apply(input.batch(), LogRatio.full(input.current(), behavior));
        ObjectiveInput corrected = input.withProximal(behavior).withMask(correction.mask());
        if (config.mode() == ObjectiveMode.BYPASS_REINFORCE
                && correction.weights().isPresent()) {
            corrected = corrected.withWeights(correction.weights().get());
        }
        ObjectiveResult result = loss.evaluate(corrected);
        Map<String, Double> metrics = new LinkedHashMap<>(result.metrics());
        metrics.putAll(correction.metrics());
        return new ObjectiveResult(result.loss(), result.gradient(), result.clipFlags(), metrics);
    }
}
