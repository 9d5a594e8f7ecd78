package dev.millrace.generator.sampling;

import dev.millrace.policy.session.DecodeSession;
import java.util.Optional;
import java.util.stream.IntStream;

/** Puts into a cache what the slots of a session hold of finished sequences, and into its slots what a prompt has in the cache. */
final class KeptPrefixes {
    private final DecodeSession session;
    private final PrefixCache cache;
    private long reusedTokens;

    /** @param cache that sessions of the same weights may share */
    KeptPrefixes(DecodeSession session, PrefixCache cache) {
        this.session = session;
        this.cache = cache;
    }

    /** Tokens that did not have to be taken in. */
    long reusedTokens() {
        return reusedTokens;
    }

    /** Has a slot hold the beginning of its sequence's prompt, if it is kept; says whether it is. */
    boolean goOn(int slot, RunningSequence sequence) {
        Optional<PrefixCache.Found> found = cache.find(sequence.prompt().tokens(), sequence.under());
        if (found.isEmpty()) {
            return false;
        }
        int tokens = found.get().tokens();
        session.resume(slot, found.get().held(), tokens, sequence.sequenceToken(tokens));
        sequence.hold(tokens + 1);
        sequence.reuse(tokens);
        reusedTokens += tokens;
        return true;
    }

    /**
     * Keeps all that was fed to a finished sequence.
     *
     * @param version that made it, alone
     */
    void keep(int slot, RunningSequence sequence, long version) {
        int fed = sequence.held() - 1;
        if (fed > 0) {
            int[] tokens = IntStream.range(0, fed).map(sequence::sequenceToken).toArray();
            cache.keep(tokens, version, session.prefixBytes(fed), () -> session.take(slot, fed));
        }
    }
}
