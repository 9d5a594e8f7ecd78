package dev.millrace.corrections.advantage;

import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageFacts.TrackedValue;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Set;
import java.util.SortedMap;

/**
 * An outcome advantage against a baseline that earlier batches left, one per key.
 *
 * <p>The assembly of batches keeps a few figures per key. It decides a batch with the baselines from before it and records
 * them, so that a step or a replay decides the same. Then the batch's rewards update the figures, in the order of its
 * sequences. Nothing may shape these rewards.
 */
public interface TrackedBaseline extends AdvantageEstimator {

    /** What figures are kept per: {@link StageInput#PROMPTS} or {@link StageInput#TASKS}. */
    StageInput per();

    /** Figures of a key that no batch had; the caller's. */
    double[] initial();

    /** The baseline that figures stand for. */
    double baseline(double[] figures);

    /**
     * Figures after a batch; the caller's.
     *
     * @param figures before it, not to be written
     * @param rewards of the key's sequences, in order
     * @param versions since the key's last update, at least 0; 0 for a new key
     */
    double[] updated(double[] figures, double[] rewards, long versions);

    /**
     * One advantage per sequence.
     *
     * @param rewards finite, one per sequence
     */
    double[] advantages(double[] rewards, double[] baselines);

    @Override
    default Set<StageInput> inputs() {
        return Set.of(per(), StageInput.BASELINES);
    }

    @Override
    default StageOutcome apply(StageBatch batch) {
        StageFacts facts = batch.facts();
        facts.tokens().requireFinitePerSequence("rewards", batch.rewards());
        double[] baselines =
                facts.baselines().stream().mapToDouble(TrackedValue::value).toArray();
        double[] advantages = advantages(batch.rewards(), baselines);
        SortedMap<String, Double> values = AdvantageReport.of(this, batch, advantages);
        double sum = 0;
        for (double baseline : baselines) {
            sum += baseline;
        }
        if (baselines.length > 0) {
            values.put("mean_baseline", sum / baselines.length);
        }
        return batch.advantage(this, advantages, values);
    }
}
