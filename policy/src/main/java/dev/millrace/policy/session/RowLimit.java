package dev.millrace.policy.session;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Limits the sequences of one padded length in a micro-batch. */
@FunctionalInterface
interface RowLimit {
    /**
     * At least 1.
     *
     * @throws PassMemoryException if a single one exceeds the limit
     */
    int sequences(int paddedLength);

    /** Allows as many sequences as fit into a budget of padded tokens; a longer sequence runs alone. */
    static RowLimit tokens(int budget) {
        if (budget < 1) {
            throw new IllegalArgumentException("tokenBudget must be at least 1: tokenBudget=" + budget);
        }
        return length -> Math.max(1, budget / length);
    }

    /** Allows as many sequences as another limit allows and memory holds. Thread-safe. */
    final class ByMemory implements RowLimit {
        private final RowLimit most;
        private final PassBytes estimate;
        private final long bytes;
        private final Map<Integer, Integer> known = new ConcurrentHashMap<>();

        ByMemory(RowLimit most, PassBytes estimate, long bytes) {
            this.most = most;
            this.estimate = estimate;
            this.bytes = bytes;
        }

        @Override
        public int sequences(int paddedLength) {
            return known.computeIfAbsent(paddedLength, this::fitting);
        }

        private int fitting(int length) {
            long one = estimate.of(1, length);
            if (one > bytes) {
                throw new PassMemoryException(length, one, bytes);
            }
            int fits = 1;
            int above = most.sequences(length) + 1;
            while (above - fits > 1) {
                int middle = (fits + above) >>> 1;
                if (estimate.of(middle, length) <= bytes) {
                    fits = middle;
                } else {
                    above = middle;
                }
            }
            return fits;
        }
    }
}
