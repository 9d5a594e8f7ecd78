package dev.millrace.corrections.length;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;

/**
 * What the length of an answer costs: an amount to subtract from its reward, before advantages are taken.
 *
 * <p>Immutable and thread-safe. A sequence without trained tokens costs nothing.
 */
public interface LengthPenalty extends RewardStage {

    /**
     * One amount per sequence; a negative one is a bonus.
     *
     * @param batch lengths are trained tokens, groups are prompts
     * @param correct whether each sequence solved its problem
     * @throws IllegalArgumentException if there is not one verdict per sequence
     */
    double[] perSequence(TokenBatch batch, boolean[] correct);

    /** The reward, as it came, above which a sequence counts as correct. */
    double correctAbove();

    @Override
    default CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    default StageOutcome apply(StageBatch batch) {
        double[] rewards = batch.rewards().clone();
        boolean[] correct = new boolean[rewards.length];
        double solved = 0;
        for (int s = 0; s < correct.length; s++) {
            correct[s] = batch.facts().rewards()[s] > correctAbove();
            solved += correct[s] ? 1 : 0;
        }
        double[] penalties = perSequence(batch.facts().tokens(), correct);
        double sum = 0;
        for (int s = 0; s < rewards.length; s++) {
            rewards[s] -= penalties[s];
            sum += penalties[s];
        }
        Map<String, Double> values = StageSettings.of(this);
        values.put("correct_sequences", solved);
        if (rewards.length > 0) {
            values.put("mean_penalty", sum / rewards.length);
        }
        return batch.reward(this, rewards, values);
    }
}
