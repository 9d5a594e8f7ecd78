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
final class VerifiedCredit {
    private VerifiedCredit() {}

    /**
     * One reward per turn of the rollout, those that are not the policy's without one, and one per token; null where there is
     * neither.
     *
     * @throws IllegalStateException if there are as many of neither turns nor tokens
     */
    static @Nullable Credit of(VerifiedReward verdict, RunningSequence sequence, List<Turn> turns) {
        ByteBuffer perTurn = verdict.turnRewards().isEmpty() ? null : perTurn(verdict.turnRewards(), sequence, turns);
        ByteBuffer perToken = verdict.tokenRewards().isEmpty() ? null : perToken(verdict.tokenRewards(), sequence);
        return perTurn == null && perToken == null
                ? null
                : Credit.newBuilder()
                        .setTurnLevelRewards(perTurn)
                        .setTokenLevelRewards(perToken)
                        .build();
    }

    private static ByteBuffer perTurn(List<Double> rewards, RunningSequence sequence, List<Turn> turns) {
        float[] all = new float[turns.size()];
        int ofPolicy = 0;
        for (int turn = 0; turn < all.length; turn++) {
            if (turns.get(turn).getSpeaker() == Speaker.POLICY) {
                if (ofPolicy < rewards.size()) {
                    all[turn] = rewards.get(ofPolicy).floatValue();
                }
                ofPolicy++;
            }
        }
        requireAsMany(rewards.size(), ofPolicy, "turns of the policy", sequence);
        return PackedFloats.of(all);
    }

    private static ByteBuffer perToken(List<Double> rewards, RunningSequence sequence) {
        requireAsMany(rewards.size(), sequence.length(), "tokens", sequence);
        float[] all = new float[rewards.size()];
        for (int t = 0; t < all.length; t++) {
            all[t] = rewards.get(t).floatValue();
        }
        return PackedFloats.of(all);
    }

    private static void requireAsMany(int rewards, int there, String what, RunningSequence sequence) {
        if (rewards != there) {
            throw new IllegalStateException("environment "
                    + sequence.prompt().environment().name() + " gave " + rewards + " rewards to the " + there + " "
                    + what
                    + " of " + sequence.rolloutId() + "; it must give one to each, or none at all");
        }
    }
}
