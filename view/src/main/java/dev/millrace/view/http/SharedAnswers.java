package dev.millrace.view.http;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Answers that all who look share: each is made once for as long as it holds, however many pages are open, and by one of those who ask at once.
 * Thread-safe.
 */
final class SharedAnswers {
    static final long NO_VERSION = -1;

    private static final int KEPT = 64;

    private final LongSupplier nanos;
    private final Map<String, Kept> kept = new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Kept> eldest) {
            return size() > KEPT;
        }
    };

    /** @param nanos a clock such as {@link System#nanoTime} */
    SharedAnswers(LongSupplier nanos) {
        this.nanos = nanos;
    }

    /** One answer, and what it was made of. */
    private static final class Kept {
        private @Nullable String answer;
        private long version;
        private long at;
    }

    /** What makes an answer. */
    interface Making {
        String make() throws BadRequestException, InterruptedException;
    }

    /**
     * The answer, made now unless the last one holds.
     *
     * @param key of run and question
     * @param version of what it is made of: while that stays, the answer holds; {@link #NO_VERSION} where it changes by itself
     * @param limitMs how old it may be in any case, at least 0
     */
    String get(String key, long version, long limitMs, Making making) throws BadRequestException, InterruptedException {
        Kept last;
        synchronized (kept) {
            last = kept.computeIfAbsent(key, unknown -> new Kept());
        }
        synchronized (last) {
            String answer = last.answer;
            if (answer == null
                    || (version == NO_VERSION || last.version != version)
                            && nanos.getAsLong() - last.at >= TimeUnit.MILLISECONDS.toNanos(limitMs)) {
                answer = making.make();
                last.answer = answer;
                last.version = version;
                last.at = nanos.getAsLong();
            }
            return answer;
        }
    }
}
