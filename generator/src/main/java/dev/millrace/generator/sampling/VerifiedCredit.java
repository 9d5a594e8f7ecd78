package dev.millrace.generator.sampling;

import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.packed.PackedFloats;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What an environment said of turns and tokens, as the record has it. */
public final class VerifiedCredit {
    private VerifiedCredit() {}

    /**
     * Refuses rewards that are not one for each.
     *
     * @param mask who wrote which token
     * @throws IllegalStateException with both numbers
     */
    static void require(VerifiedReward verdict, byte[] mask) {
        int turns = 0;
        for (int t = 0; t < mask.length; t++) {
            turns += mask[t] == 1 && (t == 0 || mask[t - 1] == 0) ? 1 : 0;
        }
        requireAsMany(verdict.turnRewards().size(), turns, "turns of the policy");
        requireAsMany(verdict.tokenRewards().size(), mask.length, "tokens of the response");
    }

    private static void requireAsMany(int rewards, int there, String what) {
        if (rewards != 0 && rewards != there) {
            throw new IllegalStateException(
                    "there are " + rewards + " rewards for the " + there + " " + what + "; give one to each, or none");
        }
    }

    /**
     * One reward per turn of the rollout, those that are not the policy's without one, and one per token; null where there is
     * neither.
     *
     * @param verdict with as many as {@link #require} wants
     */
    public static @Nullable Credit of(VerifiedReward verdict, List<Turn> turns) {
        ByteBuffer perTurn = verdict.turnRewards().isEmpty() ? null : perTurn(verdict.turnRewards(), turns);
        ByteBuffer perToken = verdict.tokenRewards().isEmpty() ? null : perToken(verdict.tokenRewards());
        return perTurn == null && perToken == null
                ? null
                : Credit.newBuilder()
                        .setTurnLevelRewards(perTurn)
                        .setTokenLevelRewards(perToken)
                        .build();
    }

    private static ByteBuffer perTurn(List<Double> rewards, List<Turn> turns) {
        float[] all = new float[turns.size()];
        int ofPolicy = 0;
        for (int turn = 0; turn < all.length; turn++) {
            if (turns.get(turn).getSpeaker() == Speaker.POLICY) {
                all[turn] = rewards.get(ofPolicy++).floatValue();
            }
        }
        return PackedFloats.of(all);
    }

    private static ByteBuffer perToken(List<Double> rewards) {
        float[] all = new float[rewards.size()];
        for (int t = 0; t < all.length; t++) {
            all[t] = rewards.get(t).floatValue();
        }
        return PackedFloats.of(all);
    }
}
