package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Set;

/**
 * A teacher for the wrong answers to hard prompts, in the place of rewards: their advantage is
 * {@code whiten(log teacher_t − log proximal_t)}, everyone else's is GRPO's.
 *
 * <p>Unit: token. A prompt is hard if the share of correct answers in its group is below {@code solveRateBelow}. Whitening is over
 * the taught tokens alone, so that neither scale sets the other; fewer than 2 of them get advantage 0. The first
 * {@code horizon} trained tokens of a taught answer have an advantage, the rest none.
 *
 * <p>Source: Li 2026, "Implementing On-Policy Distillation" (zoeyli.com).
 *
 * @param solveRateBelow share of correct answers below which a prompt is hard; above 0, at most 1
 * @param correctAbove reward, as it came, above which a sequence is correct; finite
 * @param horizon trained tokens of an answer that are taught, from its first; 0 is all
 */
public record FailureDistillation(double solveRateBelow, double correctAbove, int horizon) implements TokenEstimator {
    public FailureDistillation {
        if (!(solveRateBelow > 0 && solveRateBelow <= 1)) {
            throw new IllegalArgumentException("solve_rate_below must be above 0 and at most 1: " + solveRateBelow);
        }
        if (!Double.isFinite(correctAbove)) {
            throw new IllegalArgumentException("correct_above must be finite: " + correctAbove);
        }
        if (horizon < 0) {
            throw new IllegalArgumentException("horizon must be at least 1, or 0 for all tokens: " + horizon);
        }
    }

    /** Prompts solved less than half of the time, whole answers; correct is what is rewarded with more than a half. */
    public static FailureDistillation defaults() {
        return new FailureDistillation(0.5, 0.5, 0);
    }

    @Override
    public Set<StageInput> inputs() {
        return Distillation.INPUTS;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        float[] advantages = perToken(batch);
        return batch.tokenAdvantage(this, advantages, Distillation.report(this, batch, advantages));
    }

    @Override
    public float[] perToken(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        boolean[] failed = failedAtHardPrompts(tokens, batch.facts().rewards());
        TokenBatch taughtTokens = tokens.withMask(withinHorizon(tokens, failed));
        double[] taught = Distillation.taught(batch);
        double[] whitened = taughtTokens.trainedTokens() < Whitening.LEAST_TOKENS
                ? new double[taught.length]
                : Whitening.ofTokens(taughtTokens, taught).apply(taught);
        double[] outcomes = new Grpo(true).perSequence(tokens, batch.rewards());
        float[] advantages = new float[taught.length];
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            for (int t = tokens.start(s); t < tokens.end(s); t++) {
                if (failed[s] ? taughtTokens.isTrained(t) : tokens.isTrained(t)) {
                    advantages[t] = (float) (failed[s] ? whitened[t] : outcomes[s]);
                }
            }
        }
        return advantages;
    }

    private boolean[] failedAtHardPrompts(TokenBatch tokens, double[] rewards) {
        int[] members = new int[tokens.groupCount()];
        int[] solved = new int[tokens.groupCount()];
        for (int s = 0; s < rewards.length; s++) {
            members[tokens.group(s)]++;
            solved[tokens.group(s)] += rewards[s] > correctAbove ? 1 : 0;
        }
        boolean[] failed = new boolean[rewards.length];
        for (int s = 0; s < rewards.length; s++) {
            int group = tokens.group(s);
            failed[s] = rewards[s] <= correctAbove && solved[group] < solveRateBelow * members[group];
        }
        return failed;
    }

    private byte[] withinHorizon(TokenBatch tokens, boolean[] failed) {
        byte[] taught = new byte[tokens.tokenCount()];
        for (int s = 0; s < failed.length; s++) {
            int left = horizon == 0 ? Integer.MAX_VALUE : horizon;
            for (int t = tokens.start(s); failed[s] && t < tokens.end(s); t++) {
                if (tokens.isTrained(t) && left-- > 0) {
                    taught[t] = 1;
                }
            }
        }
        return taught;
    }
}
