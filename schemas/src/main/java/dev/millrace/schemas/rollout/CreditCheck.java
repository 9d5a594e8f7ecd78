package dev.millrace.schemas.rollout;

import dev.millrace.schemas.Credit;
import dev.millrace.schemas.packed.PackedFloats;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** Checks number and range of rewards, advantages and values per turn and token. */
public final class CreditCheck {
    private CreditCheck() {}

    /**
     * Checks the length of every given vector; advantages and values must be finite, rewards within the bound.
     *
     * @param credit may be null
     * @param turns of the rollout; -1 if not known yet
     * @param tokens of the response; -1 if not known yet
     * @throws RefusedException naming the first violation
     */
    public static void require(@Nullable Credit credit, int turns, int tokens, double maxReward)
            throws RefusedException {
        if (credit == null) {
            return;
        }
        require(credit.getTurnLevelRewards(), turns, maxReward, "credit.turn_level_rewards");
        require(credit.getTokenLevelRewards(), tokens, maxReward, "credit.token_level_rewards");
        require(credit.getTurnLevelAdvantages(), turns, Double.MAX_VALUE, "credit.turn_level_advantages");
        require(credit.getTokenLevelAdvantages(), tokens, Double.MAX_VALUE, "credit.token_level_advantages");
        require(credit.getTokenLevelValues(), tokens, Double.MAX_VALUE, "credit.token_level_values");
        Double greedy = credit.getGreedyReward();
        if (greedy != null && !(Math.abs(greedy) <= maxReward)) { // negated so that NaN is refused too
            throw new RefusedException(
                    RefusalReason.REWARD,
                    "credit.greedy_reward",
                    "a reward must be finite and at most " + maxReward + " in magnitude: " + greedy);
        }
    }

    private static void require(@Nullable ByteBuffer packed, int wanted, double most, String field)
            throws RefusedException {
        if (packed == null) {
            return;
        }
        int elements = VectorCheck.elements(packed, field);
        if (wanted >= 0 && elements != wanted) {
            throw new RefusedException(
                    RefusalReason.LENGTHS, field, field + " must have " + wanted + " elements: " + elements);
        }
        for (int i = 0; i < elements; i++) {
            float value = PackedFloats.get(packed, i);
            if (!(Math.abs(value) <= most)) { // negated so that NaN is refused too
                throw new RefusedException(
                        RefusalReason.REWARD,
                        field + "[" + i + "]",
                        "a reward, advantage or value must be finite and at most " + most + " in magnitude: " + value);
            }
        }
    }
}
