package dev.millrace.corrections.kl;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;
import java.util.Set;

/**
 * The penalty of {@link InRewardPenalty} as the first stage that shapes rewards: a sequence's reward less
 * {@code c · Σ penalty} over its own trained tokens, proximal being the policy kept near the reference.
 *
 * <p>Unit: sequence.
 *
 * @param coefficient c, as the controller left it; finite, at least 0
 * @param penalty of each token
 */
public record KlInReward(double coefficient, InRewardPenalty penalty) implements RewardStage {
    public KlInReward {
        if (!(coefficient >= 0 && coefficient < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("KL coefficient must be finite and not negative: " + coefficient);
        }
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.BEHAVIOR, StageInput.PROXIMAL, StageInput.REFERENCE);
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch own = batch.facts().tokens();
        double[] perToken = penalty.penalise(
                own,
                new double[own.tokenCount()],
                batch.facts().vector(StageInput.PROXIMAL),
                batch.facts().vector(StageInput.BEHAVIOR),
                batch.facts().vector(StageInput.REFERENCE),
                coefficient);
        double[] rewards = batch.rewards().clone();
        double sum = 0;
        for (int s = 0; s < rewards.length; s++) {
            double penalised = rewards[s];
            for (int t = own.start(s); t < own.end(s); t++) {
                penalised += perToken[t];
            }
            sum += rewards[s] - penalised;
            rewards[s] = penalised;
        }
        Map<String, Double> values = StageSettings.of(this);
        if (rewards.length > 0) {
            values.put("mean_penalty", sum / rewards.length);
        }
        return batch.reward(this, rewards, values);
    }
}
