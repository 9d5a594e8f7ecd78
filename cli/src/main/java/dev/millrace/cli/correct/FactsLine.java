package dev.millrace.cli.correct;

import dev.millrace.corrections.stage.StageInput;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One validated input sequence of an algorithm.
 *
 * @param number line number in the file, from 1
 * @param group group of the sample; empty for its own group
 */
public record FactsLine(int number, String id, byte[] mask, String group, double reward, StageValues values) {

    /**
     * Stage inputs in addition to mask, group and reward.
     *
     * @param integers one whole number per token
     * @param turnRewards one per turn; null if the line has none
     * @param components parts of the reward by name; null if the line has none
     */
    public record StageValues(
            Map<StageInput, float[]> vectors,
            Map<StageInput, long[]> integers,
            Map<StageInput, Double> numbers,
            @Nullable List<Double> turnRewards,
            @Nullable Map<String, Double> components) {}
}
