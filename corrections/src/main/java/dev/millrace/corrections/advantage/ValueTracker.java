package dev.millrace.corrections.advantage;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.stage.StageInput;

/**
 * SPO's advantage: the reward against the success rate v of its prompt, {@code A = (r − v − mean) / (std + 1e-8)}.
 *
 * <p>{@code v = α / (α + β)}. Each batch updates {@code α <- ρ α + Σ r} and {@code β <- ρ β + Σ (1 − r)} over the prompt's sequences.
 * {@code ρ = 2^(−D / half life)}, clamped to [rho_min, rho_max], where D counts versions since the prompt's last batch. The paper
 * takes the KL divergence between the two policies for D, but a run scores no earlier answer under a later policy. A new prompt
 * has {@code α = β = 1/2}, without the paper's estimate before training. Rewards must lie in [0, 1].
 *
 * <p>Mean and deviation are over the batch's sequences, each counted once; the deviation is the sample's (n − 1). A batch of one
 * sequence has advantage 0. For one rollout per prompt; groups of any size may come. Unit: sequence, normalised over the batch.
 *
 * <p>Source: Xu and Ding 2025, SPO (arXiv 2509.13232); bounds, prior and normalisation of verl's {@code recipe/spo}.
 *
 * @param rhoMin smallest discount, above 0 and at most rho_max
 * @param rhoMax largest discount, below 1
 * @param halfLifeVersions versions after which earlier rewards count half, before clamping; finite, above 0
 */
public record ValueTracker(double rhoMin, double rhoMax, double halfLifeVersions) implements TrackedBaseline {
    private static final double PRIOR = 0.5;
    private static final double DEVIATION_FLOOR = 1e-8;

    public ValueTracker {
        if (!(rhoMin > 0 && rhoMin <= rhoMax)) {
            throw new IllegalArgumentException("rho_min must be above 0 and at most rho_max " + rhoMax + ": " + rhoMin);
        }
        if (!(rhoMax < 1)) {
            throw new IllegalArgumentException("rho_max must be below 1, or nothing is ever forgotten: " + rhoMax);
        }
        if (!(halfLifeVersions > 0 && halfLifeVersions < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("half_life_versions must be finite and above 0: " + halfLifeVersions);
        }
    }

    /** verl's bounds; half of what a prompt did 100 versions ago, which the bounds reach after 6 and 19. */
    public static ValueTracker defaults() {
        return new ValueTracker(0.875, 0.96, 100);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.BATCH;
    }

    @Override
    public StageInput per() {
        return StageInput.PROMPTS;
    }

    @Override
    public double[] initial() {
        return new double[] {PRIOR, PRIOR};
    }

    @Override
    public double baseline(double[] figures) {
        return figures[0] / (figures[0] + figures[1]);
    }

    @Override
    public double[] updated(double[] figures, double[] rewards, long versions) {
        double rho = Math.min(rhoMax, Math.max(rhoMin, Math.pow(2, -versions / halfLifeVersions)));
        double alpha = rho * figures[0];
        double beta = rho * figures[1];
        for (double reward : rewards) {
            alpha += reward;
            beta += 1 - reward;
        }
        return new double[] {alpha, beta};
    }

    @Override
    public double[] advantages(double[] rewards, double[] baselines) {
        int n = rewards.length;
        double[] advantages = new double[n];
        double sum = 0;
        for (int s = 0; s < n; s++) {
            if (!(rewards[s] >= 0 && rewards[s] <= 1)) {
                throw new IllegalArgumentException(
                        "rewards must lie in [0, 1], for value_tracker counts successes: sequence=" + s + ", reward="
                                + rewards[s] + "; ema_baseline tracks any reward");
            }
            advantages[s] = rewards[s] - baselines[s];
            sum += advantages[s];
        }
        double mean = sum / n;
        double squares = 0;
        for (double advantage : advantages) {
            squares += (advantage - mean) * (advantage - mean);
        }
        double deviation = n < 2 ? 0 : Math.sqrt(squares / (n - 1));
        for (int s = 0; s < n; s++) {
            advantages[s] = (advantages[s] - mean) / (deviation + DEVIATION_FLOOR);
        }
        return advantages;
    }
}
