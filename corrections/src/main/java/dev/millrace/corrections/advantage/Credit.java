package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import java.util.Arrays;
import java.util.Set;

/**
 * The positions of a sequence's rewards. Changes made by reward-shaping stages are always credited to the sequence's
 * last trained token.
 */
public enum Credit {
    /** The sequence's reward at its last trained token. */
    OUTCOME,
    /** The recorded reward of each turn at the turn's last trained token; the sequence's own is left out. */
    TURN,
    /** The recorded rewards of tokens where they stand; the sequence's own is left out. */
    TOKEN;

    Set<StageInput> inputs() {
        return switch (this) {
            case OUTCOME -> Set.of();
            case TURN -> Set.of(StageInput.TURNS, StageInput.TURN_REWARDS);
            case TOKEN -> Set.of(StageInput.TOKEN_REWARDS);
        };
    }

    /** One reward per packed token, 0 at context and where there is none. */
    float[] rewards(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        float[] rewards = new float[tokens.tokenCount()];
        process(batch, rewards);
        double[] own = this == OUTCOME
                ? new double[tokens.sequenceCount()]
                : batch.facts().rewards();
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            int last = lastTrained(tokens, tokens.start(s), tokens.end(s));
            if (last >= 0) {
                rewards[last] += (float) (batch.rewards()[s] - own[s]);
            }
        }
        return rewards;
    }

    /**
     * The rewards within sequences, and where there is one: 1 in what is returned. None and 0 are different things; a token
     * whose recorded reward is NaN has none.
     */
    byte[] process(StageBatch batch, float[] into) {
        TokenBatch tokens = batch.facts().tokens();
        byte[] rewarded = new byte[into.length];
        if (this == TOKEN) {
            float[] recorded = batch.facts().vector(StageInput.TOKEN_REWARDS);
            for (int t = 0; t < into.length; t++) {
                if (tokens.isTrained(t) && !Float.isNaN(recorded[t])) {
                    into[t] = recorded[t];
                    rewarded[t] = 1;
                }
            }
        } else if (this == TURN) {
            for (int s = 0; s < tokens.sequenceCount(); s++) {
                turns(batch, s, into, rewarded);
            }
        }
        return rewarded;
    }

    private static void turns(StageBatch batch, int s, float[] into, byte[] rewarded) {
        TokenBatch tokens = batch.facts().tokens();
        int[] turns = batch.facts().turns();
        double[] rewards = batch.facts().turnRewards()[s];
        int[] last = new int[rewards.length];
        Arrays.fill(last, -1);
        for (int t = tokens.start(s); t < tokens.end(s); t++) {
            if (tokens.isTrained(t)) {
                if (turns[t] < 0 || turns[t] >= rewards.length) {
                    throw new IllegalArgumentException(
                            "a trained token must be of a turn that has a reward: sequence=" + s + ", token="
                                    + (t - tokens.start(s)) + ", turn=" + turns[t] + ", rewards=" + rewards.length);
                }
                last[turns[t]] = t;
            }
        }
        for (int turn = 0; turn < rewards.length; turn++) {
            if (last[turn] >= 0) {
                into[last[turn]] = (float) rewards[turn];
                rewarded[last[turn]] = 1;
            }
        }
    }

    private static int lastTrained(TokenBatch tokens, int start, int end) {
        int t = end - 1;
        while (t >= start && !tokens.isTrained(t)) {
            t--;
        }
        return t >= start ? t : -1;
    }
}
