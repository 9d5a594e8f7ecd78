package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;

/**
 * GPG's advantage: {@code α (r − mean) / F}, where {@code α = sequences / sequences whose reward is not 0} makes up for
 * sequences without signal.
 *
 * <p>Unit: sequence, against its group; {@code α} is the batch's. A group of one keeps {@code α r / F}.
 *
 * <p>Source: Chu et al. 2025 (arXiv 2504.02546), as verl reads it: the paper counts groups whose rewards all agree,
 * verl counts rewards that are 0.
 *
 * @param normalisation F; finite and not 0
 */
public record Gpg(double normalisation) implements OutcomeAdvantage {
    public Gpg {
        if (!Double.isFinite(normalisation) || normalisation == 0) {
            throw new IllegalArgumentException("normalisation must be finite and not 0: " + normalisation);
        }
    }

    /** As in verl. */
    public static Gpg defaults() {
        return new Gpg(1);
    }

    @Override
    public double[] perSequence(TokenBatch batch, double[] rewards) {
        batch.requireFinitePerSequence("rewards", rewards);
        GroupMoments moments = GroupMoments.of(batch, rewards);
        int withSignal = 0;
        for (double reward : rewards) {
            withSignal += reward != 0 ? 1 : 0;
        }
        double alpha = (double) rewards.length / Math.max(1, withSignal);
        double[] advantages = new double[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            int group = batch.group(s);
            double mean = moments.size(group) > 1 ? moments.mean(group) : 0.0;
            advantages[s] = alpha * (rewards[s] - mean) / normalisation;
        }
        return advantages;
    }
}
