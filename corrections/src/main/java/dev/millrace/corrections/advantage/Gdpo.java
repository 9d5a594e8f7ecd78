package dev.millrace.corrections.advantage;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * GDPO: each component of the reward is normalised within its group before they are added, so that no component drowns
 * the others: {@code A = whiten(Σ_k w_k · (r_k − mean_k) / (std_k + 1e-6))}.
 *
 * <p>Unit: sequence, against its group, then whitened over all trained tokens of the batch. In a plain sum the
 * component with the widest spread decides alone. Groups of one keep each component's value. At least 2 trained tokens
 * are needed; a batch with fewer gives no training signal. The change made by reward-shaping stages counts as one more
 * component, with weight 1.
 *
 * <p>Source: arXiv 2601.05242.
 *
 * @param components finite weight per reward component; empty weighs all by 1
 */
public record Gdpo(Map<String, String> components) implements AdvantageEstimator {
    public Gdpo {
        components = Map.copyOf(components);
        components.forEach(Gdpo::weight);
    }

    /** All components, with weight 1. */
    public static Gdpo defaults() {
        return new Gdpo(Map.of());
    }

    private static double weight(String name, String text) {
        try {
            double weight = Double.parseDouble(text);
            if (Double.isFinite(weight)) {
                return weight;
            }
        } catch (NumberFormatException notANumber) {
            throw new IllegalArgumentException(
                    "components." + name + " must be a finite number: '" + text + "'", notANumber);
        }
        throw new IllegalArgumentException("components." + name + " must be a finite number: '" + text + "'");
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.GROUP;
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.REWARD_COMPONENTS);
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        SortedMap<String, Double> weights = weights(batch.facts().rewardComponents());
        double[][] values = new double[weights.size() + 1][tokens.sequenceCount()];
        double[] factors = Arrays.copyOf(
                weights.values().stream().mapToDouble(Double::doubleValue).toArray(), values.length);
        int k = 0;
        for (String name : weights.keySet()) {
            values[k++] = named(name, batch.facts().rewardComponents());
        }
        boolean shaped = false;
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            values[k][s] = batch.rewards()[s] - batch.facts().rewards()[s];
            shaped |= values[k][s] != 0;
        }
        factors[k] = 1;
        double[] advantages = tokens.trainedTokens() < Whitening.LEAST_TOKENS
                ? new double[tokens.sequenceCount()]
                : perSequence(
                        tokens,
                        shaped ? values : Arrays.copyOf(values, k),
                        shaped ? factors : Arrays.copyOf(factors, k));
        Map<String, Double> report = AdvantageReport.of(this, batch, advantages);
        report.put("components", (double) (shaped ? k + 1 : k));
        return batch.advantage(this, advantages, report);
    }

    private SortedMap<String, Double> weights(List<Map<String, Double>> ofSequences) {
        SortedMap<String, Double> weights = new TreeMap<>();
        if (components.isEmpty()) {
            Set<String> names = new TreeSet<>();
            ofSequences.forEach(parts -> names.addAll(parts.keySet()));
            names.forEach(name -> weights.put(name, 1.0));
        } else {
            components.forEach((name, text) -> weights.put(name, weight(name, text)));
        }
        if (weights.isEmpty()) {
            throw new IllegalArgumentException(
                    "gdpo needs reward components, and the batch's rewards have none; take grpo");
        }
        return weights;
    }

    private static double[] named(String name, List<Map<String, Double>> ofSequences) {
        double[] values = new double[ofSequences.size()];
        for (int s = 0; s < values.length; s++) {
            Double value = ofSequences.get(s).get(name);
            if (value == null) {
                throw new IllegalArgumentException("gdpo needs the reward component " + name + " of every sequence:"
                        + " sequence=" + s + " has "
                        + new TreeSet<>(ofSequences.get(s).keySet()));
            }
            values[s] = value;
        }
        return values;
    }

    /**
     * One advantage per sequence.
     *
     * @param components {@code [components][sequences]}, finite
     * @param weights one finite weight per component; all 1 in the paper
     */
    public static double[] perSequence(TokenBatch batch, double[][] components, double[] weights) {
        if (components.length != weights.length) {
            throw new IllegalArgumentException(
                    "one weight per reward component: weights=" + weights.length + ", components=" + components.length);
        }
        double[] sum = new double[batch.sequenceCount()];
        for (int k = 0; k < components.length; k++) {
            batch.requireFinitePerSequence("reward component " + k, components[k]);
            double[] normalised = new Grpo(true).perSequence(batch, components[k]);
            for (int s = 0; s < sum.length; s++) {
                sum[s] += weights[k] * normalised[s];
            }
        }
        return Whitening.ofSequences(batch, sum).apply(sum);
    }
}
