package dev.millrace.generator.sampling;

import dev.millrace.policy.session.HeldPrefix;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * KV caches of paused conversations, reused by the next turn with the same prefix. Holds caches of the newest version
 * only, and evicts the least recently used. Confined to the sampling thread.
 */
final class PrefixCache {
    /** Fewer are taken in again as fast as they are put back. */
    static final int LEAST_TOKENS = 8;

    private record Entry(int[] tokens, HeldPrefix held, long bytes) {}

    /**
     * What there is of a prompt.
     *
     * @param tokens how many of its first ones
     */
    record Found(HeldPrefix held, int tokens) {}

    private final long mostBytes;
    private final List<Entry> entries = new ArrayList<>(); // what was used last is last
    private long version = -1;
    private long bytes;

    /** @param mostBytes of what is held */
    PrefixCache(long mostBytes) {
        this.mostBytes = mostBytes;
    }

    /**
     * Adds the cache of a finished sequence.
     *
     * @param under  the version that made all of their keys and values
     * @param size   bytes that these take
     * @param held   takes them out, if they are to be held
     */
    void keep(int[] tokens, long under, long size, Supplier<HeldPrefix> held) {
        if (under > version) {
            forget();
            version = under;
        }
        if (under < version || tokens.length < LEAST_TOKENS || size > mostBytes) {
            return;
        }
        if (entries.stream().anyMatch(entry -> common(entry.tokens(), tokens) == tokens.length)) {
            return; // there as the beginning of another one
        }
        entries.removeIf(entry -> {
            boolean isInIt = common(entry.tokens(), tokens) == entry.tokens().length;
            bytes -= isInIt ? entry.bytes() : 0;
            return isInIt;
        });
        while (bytes + size > mostBytes) {
            bytes -= entries.remove(0).bytes();
        }
        entries.add(new Entry(tokens, held.get(), size));
        bytes += size;
    }

    /** Returns the longest cached prefix of a prompt, without its last token, which is always fed. */
    Optional<Found> find(int[] prompt, long under) {
        Entry longest = null;
        int most = LEAST_TOKENS - 1;
        for (Entry entry : under == version ? entries : List.<Entry>of()) {
            int common = Math.min(common(entry.tokens(), prompt), prompt.length - 1);
            if (common > most) {
                longest = entry;
                most = common;
            }
        }
        if (longest == null) {
            return Optional.empty();
        }
        entries.remove(longest);
        entries.add(longest);
        return Optional.of(new Found(longest.held(), most));
    }

    /** From now on a version may stand for other weights than it did. */
    void forget() {
        entries.clear();
        bytes = 0;
        version = -1;
    }

    long bytes() {
        return bytes;
    }

    private static int common(int[] a, int[] b) {
        int mismatch = Arrays.mismatch(a, b);
        return mismatch < 0 ? a.length : mismatch;
    }
}
