package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What {@link BypassPpoClip} and {@link BypassReinforce} share: the behavior policy stands in for the old one, and
 * everything between it and the current policy is corrected at once, inside the update.
 *
 * <p>Rejection is decided from current over behavior, anew at every step. Then either PPO's clip with the behavior
 * policy as anchor, whose ratio is the correction, so that no weight is applied; or REINFORCE under explicit weights
 * {@code ℓ = −sg[w] A log π}. One forward pass of the learner is saved, and the trust region is measured from a policy
 * that the update cannot tell from an engine's error.
 *
 * <p>Needs behavior log-probs. Refuses weights in the input, which would correct twice. Also refuses a batch that the
 * rejection empties, unless the aggregation knows the whole batch. Metrics: those of the loss and of the correction.
 *
 * <p>Source: verl {@code bypass_mode}.
 *
 * @param correction weights and rejections; its mode selects the loss
 * @param clip the loss in {@code BYPASS_PPO_CLIP}; ignored in the other mode
 */
public record BypassMode(RolloutCorrectionConfig correction, PpoClip clip) {
    /** @throws IllegalArgumentException if the configuration is a decoupled one */
    public BypassMode {
        if (correction.mode() == ObjectiveMode.DECOUPLED) {
            throw new IllegalArgumentException("a decoupled correction keeps old and behavior apart:"
                    + " set bypass_mode=true, or use PPO clip with the correction's mask and weights");
        }
    }

    /** The loss on what the rejection leaves; what it took counts among what was acted on. */
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        float[] behavior = input.requireBehavior("bypass mode");
        if (input.hasWeights()) {
            throw new IllegalArgumentException(
                    "bypass mode makes its own weights: importance weights in the input would correct twice");
        }
        RolloutCorrectionResult corrected =
                new RolloutCorrection(correction).apply(input.batch(), LogRatio.full(input.current(), behavior));
        ObjectiveInput left = input.withProximal(behavior).withMask(corrected.mask());
        Objective loss = clip;
        if (correction.mode() == ObjectiveMode.BYPASS_REINFORCE) {
            loss = new Reinforce();
            if (corrected.weights().isPresent()) {
                left = left.withWeights(corrected.weights().get());
            }
        }
        ObjectiveResult result = loss.evaluate(left, facts);
        Map<String, Double> metrics = new LinkedHashMap<>(result.metrics());
        metrics.putAll(corrected.metrics());
        return new ObjectiveResult(
                result.loss(), result.gradient(), result.clipFlags(), actedOn(input.batch(), left, result), metrics);
    }

    private static ActedOn actedOn(TokenBatch before, ObjectiveInput left, ObjectiveResult result) {
        ActedOn.Tally acted = new ActedOn.Tally();
        for (int s = 0; s < before.sequenceCount(); s++) {
            for (int t = before.start(s); t < before.end(s); t++) {
                boolean rejected = before.isTrained(t) && !left.batch().isTrained(t);
                acted.add(s, rejected || result.clipFlags()[t] != 0 ? 1 : 0);
            }
        }
        return acted.done();
    }
}
