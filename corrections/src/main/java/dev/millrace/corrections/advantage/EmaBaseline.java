package dev.millrace.corrections.advantage;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.stage.StageInput;

/**
 * Role-conditioned advantage estimation: the reward against a moving average of earlier rewards, {@code A = r − b}.
 *
 * <p>{@code b <- decay · b + (1 − decay) · r} from b = 0, one for each task or prompt. Partners may name a role or a data set as
 * the task. All sequences of a batch are compared with the average before the batch; SPIRAL updates it between them. Unit:
 * sequence.
 *
 * <p>Source: Liu et al. 2025, SPIRAL (arXiv 2506.24119), {@code role_baseline_ema_gamma} of its code.
 *
 * @param decay weight of the average; at least 0, below 1
 * @param key what an average is kept per
 */
public record EmaBaseline(double decay, Key key) implements TrackedBaseline {

    /** What an average is kept per. */
    public enum Key {
        /** The rollout's task, as the partner that requested it named it. */
        TASK,
        /** Its prompt. */
        PROMPT
    }

    public EmaBaseline {
        if (!(decay >= 0 && decay < 1)) {
            throw new IllegalArgumentException("decay must be at least 0 and below 1: " + decay);
        }
    }

    /** SPIRAL's decay, per prompt: every rollout has one, and a task only where a partner names it. */
    public static EmaBaseline defaults() {
        return new EmaBaseline(0.95, Key.PROMPT);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public StageInput per() {
        return key == Key.TASK ? StageInput.TASKS : StageInput.PROMPTS;
    }

    @Override
    public double[] initial() {
        return new double[] {0};
    }

    @Override
    public double baseline(double[] figures) {
        return figures[0];
    }

    @Override
    public double[] updated(double[] figures, double[] rewards, long versions) {
        double average = figures[0];
        for (double reward : rewards) {
            average = decay * average + (1 - decay) * reward;
        }
        return new double[] {average};
    }

    @Override
    public double[] advantages(double[] rewards, double[] baselines) {
        double[] advantages = new double[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            advantages[s] = rewards[s] - baselines[s];
        }
        return advantages;
    }
}
