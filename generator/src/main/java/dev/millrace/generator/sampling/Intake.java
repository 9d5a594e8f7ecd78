package dev.millrace.generator.sampling;

import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.KnownTokens;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Prefills the slots with known tokens: prompts, long texts of environments, and recomputed sequences.
 *
 * <p>Tokens go through the model in pieces, many sequences at once. A prompt that a slot already holds, for example
 * of another sample of the group, is copied. Pieces are a function of the sequence alone, so the cache is the same
 * bit for bit, copied or not. The sequences that waited longest come first. Not thread-safe.
 */
final class Intake {
    private final DecodeSession session;
    private final int pieceTokens;
    private final int tokensPerCall;
    private final RecomputedPieces recomputed;
    private final boolean[] taking;
    private final int[] recomputedUpTo; // tokens of the sequence when it was begun again; 0 in the first place
    private final int[] heldAtBegin;
    private final long[] takingVersion; // under which the first piece went in
    private final long[] begun;
    private final int[] @Nullable [] heldPrompt; // whose keys and values the slot holds whole, also after its sequence
    private final long[] heldPromptVersion; // all of them under this one
    private long begins;
    private long takenTokens;
    private long copiedTokens;

    /**
     * @param pieceTokens   longest piece
     * @param tokensPerCall of all pieces of a call, unless the first alone has more
     */
    Intake(DecodeSession session, int pieceTokens, int tokensPerCall) {
        this.session = session;
        this.pieceTokens = pieceTokens;
        this.tokensPerCall = tokensPerCall;
        this.recomputed = new RecomputedPieces(pieceTokens);
        this.taking = new boolean[session.slots()];
        this.recomputedUpTo = new int[session.slots()];
        this.heldAtBegin = new int[session.slots()];
        this.takingVersion = new long[session.slots()];
        this.begun = new long[session.slots()];
        this.heldPrompt = new int[session.slots()][];
        this.heldPromptVersion = new long[session.slots()];
    }

    /** Tokens that went through the model so far. */
    long takenTokens() {
        return takenTokens;
    }

    /** Tokens of prompts that were copied from another slot instead. */
    long copiedTokens() {
        return copiedTokens;
    }

    /**
     * Begins a sequence in a slot.
     *
     * @param held tokens already in the slot, of the version that prefills the others
     */
    void begin(int slot, int held) {
        begin(slot, held, 0);
    }

    /** Restarts the slot's own sequence, which has this many tokens by now. */
    void restart(int slot, int known) {
        begin(slot, 1, known);
    }

    private void begin(int slot, int held, int known) {
        heldAtBegin[slot] = held;
        taking[slot] = false;
        recomputedUpTo[slot] = known;
        heldPrompt[slot] = null;
        begun[slot] = begins++;
    }

    /** A slot's sequence was computed again by somebody else, whole. */
    void renewed(int slot, RunningSequence sequence, long version) {
        taking[slot] = false;
        holds(slot, sequence, version);
    }

    /** A slot that holds a prompt under a version; -1 if none does. */
    int holder(int[] prompt, long version) {
        for (int slot = 0; slot < heldPrompt.length; slot++) {
            if (heldPrompt[slot] != null
                    && heldPromptVersion[slot] == version
                    && Arrays.equals(heldPrompt[slot], prompt)) {
                return slot;
            }
        }
        return -1;
    }

    /** Forgets which prompts are held: the same version may stand for other weights from now on. */
    void forget() {
        Arrays.fill(heldPrompt, null);
    }

    /** Whether a sequence has known tokens that are to be taken in before it continues; a few are rather forced on the way. */
    boolean isDue(int slot, RunningSequence sequence) {
        int pending = sequence.known() - sequence.held();
        taking[slot] = pending > 0 && (taking[slot] || pending >= session.tokensPerCall());
        return taking[slot];
    }

    /**
     * Prefills as much as fits into a call.
     *
     * @param weights of {@code version}
     * @param due     of the slots, those whose sequences are due under this version
     */
    void take(Weights weights, long version, RunningSequence[] running, boolean[] due) {
        int[] order = inOrder(due);
        List<KnownTokens> pieces = nextPieces(version, running, order, Integer.MAX_VALUE);
        for (int room = tokensPerCall; !pieces.isEmpty(); pieces = nextPieces(version, running, order, room)) {
            session.prefill(weights, pieces);
            for (KnownTokens piece : pieces) {
                RunningSequence sequence = running[piece.slot()];
                int count = piece.tokens().length;
                sequence.hold(sequence.held() + count);
                takenTokens += count;
                room -= count;
                if (sequence.held() == sequence.prompt().tokens().length && takingVersion[piece.slot()] == version) {
                    holds(piece.slot(), sequence, version);
                }
            }
        }
    }

    /** The next piece of every sequence that has one, as long as there is room; prompts that a slot holds are copied. */
    private List<KnownTokens> nextPieces(long version, RunningSequence[] running, int[] order, int most) {
        List<KnownTokens> pieces = new ArrayList<>();
        List<int[]> onTheirWay = new ArrayList<>();
        int room = Math.min(most, tokensPerCall);
        for (int slot : order) {
            RunningSequence sequence = running[slot];
            int[] prompt = sequence.prompt().tokens();
            if (sequence.held() == heldAtBegin[slot]) {
                takingVersion[slot] = version;
                if (!copied(slot, sequence, version)
                        && onTheirWay.stream().anyMatch(other -> Arrays.equals(other, prompt))) {
                    continue; // copied when it is there
                }
            }
            int from = sequence.held();
            if (from < prompt.length && takingVersion[slot] == version) {
                onTheirWay.add(prompt);
            }
            int count = count(slot, prompt.length, from, sequence.known());
            boolean fits = count <= room || most == Integer.MAX_VALUE && pieces.isEmpty();
            if (count > 0 && fits && isDue(slot, sequence)) {
                room -= count;
                pieces.add(new KnownTokens(
                        slot,
                        IntStream.range(from, from + count)
                                .map(sequence::sequenceToken)
                                .toArray()));
            }
        }
        return pieces;
    }

    private int count(int slot, int prompt, int from, int known) {
        return from < recomputedUpTo[slot]
                ? recomputed.next(prompt, from, recomputedUpTo[slot])
                : Math.min((from < prompt ? prompt : known) - from, pieceTokens);
    }

    private int[] inOrder(boolean[] due) {
        return IntStream.range(0, due.length)
                .filter(slot -> due[slot])
                .boxed()
                .sorted(Comparator.comparingLong(slot -> begun[slot]))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    /** Gives a slot its prompt from one that holds it, if there is one. */
    private boolean copied(int slot, RunningSequence sequence, long version) {
        int[] prompt = sequence.prompt().tokens();
        int other = holder(prompt, version);
        if (other < 0) {
            return false;
        }
        session.copy(other, slot, prompt.length, prompt[prompt.length - 1]);
        sequence.hold(prompt.length);
        copiedTokens += (long) prompt.length - heldAtBegin[slot];
        holds(slot, sequence, version);
        return true;
    }

    private void holds(int slot, RunningSequence sequence, long version) {
        heldPrompt[slot] = sequence.prompt().tokens();
        heldPromptVersion[slot] = version;
    }
}
