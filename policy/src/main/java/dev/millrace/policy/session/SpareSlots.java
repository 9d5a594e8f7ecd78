package dev.millrace.policy.session;

import dev.millrace.policy.weights.Weights;
import java.util.List;

/**
 * Additional slots of a {@link DecodeSession} that recompute its sequences under other weights while the session
 * continues with its own. They never sample.
 *
 * <p>Used by one thread at a time, which may run concurrently with the session's thread, except for methods marked for
 * the session's owner. Both together run at most two versions' weights. Close it before the session.
 */
public final class SpareSlots implements AutoCloseable {
    private final HeldSlots own;
    private final HeldSlots session;

    SpareSlots(HeldSlots own, HeldSlots session) {
        this.own = own;
        this.session = session;
    }

    /** Begins a sequence with its first token; discards the previous one. */
    public void reset(int spare, int firstToken) {
        own.reset(spare, firstToken);
    }

    /** As {@link DecodeSession#cut}. */
    public void cut(int spare, int tokens, int lastToken) {
        own.cut(spare, tokens, lastToken);
    }

    /** As {@link DecodeSession#prefill}, to the bit. */
    public void prefill(Weights weights, List<KnownTokens> known) {
        own.prefill(weights, known);
    }

    public int position(int spare) {
        return own.length(spare);
    }

    /**
     * Begins a sequence as a copy of the first tokens of one of the session's. For the session's owner.
     *
     * @param tokens    at least 1, and at most those of the session's
     */
    public void copyFrom(int slot, int spare, int tokens, int lastToken) {
        own.copy(session, slot, spare, tokens);
        own.set(spare, tokens, lastToken);
    }

    /** Writes a sequence's keys and values over those of a slot of the session, which is not active meanwhile; {@link #take} follows. */
    public void write(int spare, int slot) {
        session.copy(own, spare, slot, own.length(spare));
    }

    /** Switches the slot to the sequence that was {@link #write written} there. For the session's owner. */
    public void take(int spare, int slot, int lastToken) {
        session.set(slot, own.length(spare), lastToken);
    }

    @Override
    public void close() {
        own.close();
    }
}
