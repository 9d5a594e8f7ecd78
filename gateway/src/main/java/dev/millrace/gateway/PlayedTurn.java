package dev.millrace.gateway;

import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.packed.PackedInts;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An acknowledged turn and its predecessors. Immutable.
 *
 * @param parent null for a prompt of its own
 * @param answer given to the caller
 */
record PlayedTurn(SessionTurn record, @Nullable PlayedTurn parent, GivenAnswer answer) {

    List<PlayedTurn> branch() {
        Deque<PlayedTurn> turns = new ArrayDeque<>();
        for (PlayedTurn turn = this; turn != null; turn = turn.parent) {
            turns.push(turn);
        }
        return new ArrayList<>(turns);
    }

    int[] tokens() {
        List<PlayedTurn> branch = branch();
        int length = 0;
        for (PlayedTurn turn : branch) {
            length += PackedInts.length(turn.record.getContextTokens())
                    + PackedInts.length(turn.record.getSampledTokens());
        }
        int[] tokens = new int[length];
        int at = 0;
        for (PlayedTurn turn : branch) {
            for (int[] part : List.of(
                    PackedInts.toArray(turn.record.getContextTokens()),
                    PackedInts.toArray(turn.record.getSampledTokens()))) {
                System.arraycopy(part, 0, tokens, at, part.length);
                at += part.length;
            }
        }
        return tokens;
    }

    /** Everything before the sampled tokens. */
    int[] promptTokens() {
        int[] before = parent == null ? new int[0] : parent.tokens();
        return joined(before, PackedInts.toArray(record.getContextTokens()));
    }

    static int[] joined(int[] before, int[] after) {
        int[] all = Arrays.copyOf(before, before.length + after.length);
        System.arraycopy(after, 0, all, before.length, after.length);
        return all;
    }
}
