package dev.millrace.gateway;

import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.packed.PackedInts;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A turn of a session, acknowledged, and the turns before it on its branch. Immutable.
 *
 * @param record as it is on the log
 * @param parent the turn that it continues from; null where it begins with a prompt of its own
 * @param answer what its caller was given
 */
record PlayedTurn(SessionTurn record, @Nullable PlayedTurn parent, GivenAnswer answer) {

    /** From the branch's first turn to this one. */
    List<PlayedTurn> branch() {
        Deque<PlayedTurn> turns = new ArrayDeque<>();
        for (PlayedTurn turn = this; turn != null; turn = turn.parent) {
            turns.push(turn);
        }
        return new ArrayList<>(turns);
    }

    /** All tokens to its end. */
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
}
