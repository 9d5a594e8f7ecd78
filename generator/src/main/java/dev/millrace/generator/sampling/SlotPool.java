package dev.millrace.generator.sampling;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Slots of a generator, divided among engine threads with sessions and caches of their own.
 *
 * <p>Tokens depend on request, sample index and weights only, not on the number of threads. The owner alone calls
 * environments and takes and hands over sequences, in slot order. Not thread-safe.
 */
final class SlotPool implements AutoCloseable {
    private final List<ContinuousBatcher> parts = new ArrayList<>();
    private final ExecutorService threads; // in addition to the owner's, which computes too
    private final ExecutorService renewing; // one thread for each part at most, and none as long as nothing is renewed
    private final WeightUpdate weightUpdate;
    private final CacheOnSwap cacheOnSwap;
    private final double swapPauseMs;
    private @Nullable PrefixCache prefixes;

    SlotPool(Engine engine, DecoderShape shape, GeneratorConfig config) {
        this(engine, shape, config, config.prepared(engine));
    }

    /** @param prepared of the configured precision; loaders of weights may add to them */
    SlotPool(Engine engine, DecoderShape shape, GeneratorConfig config, PreparedWeights prepared) {
        this.weightUpdate = config.weightUpdate();
        this.cacheOnSwap = config.cacheOnSwap();
        this.swapPauseMs = config.swapPauseMs();
        this.renewing = Executors.newCachedThreadPool(named("renewal-" + config.id()));
        int count = config.threads();
        for (int part = 0; part < count; part++) {
            int slots = config.slots() / count + (part < config.slots() % count ? 1 : 0);
            parts.add(new ContinuousBatcher(
                    engine,
                    shape,
                    config.withSlots(slots, config.capacityTokens(), config.tokensPerCall()),
                    prepared,
                    renewing));
        }
        this.threads = Executors.newFixedThreadPool(Math.max(1, count - 1), named("engine-" + config.id()));
    }

    private static ThreadFactory named(String name) {
        AtomicInteger number = new AtomicInteger(1);
        return task -> {
            Thread thread = new Thread(task, name + "-" + number.getAndIncrement());
            thread.setDaemon(true);
            return thread;
        };
    }

    /** Whether sequences in flight go on with new weights, and with keys and values of these. */
    boolean renews() {
        return weightUpdate == WeightUpdate.IN_FLIGHT && cacheOnSwap == CacheOnSwap.RECOMPUTE;
    }

    /**
     * Takes up new weights with sequences in flight.
     *
     * @return whether sequences continue with older weights until {@link #renew renewed}, since recomputing at once
     *     would exceed the allowed pause
     */
    boolean continueWith(long version) {
        boolean isBeside = renews()
                && active() > 0
                && parts.stream()
                                .mapToDouble(ContinuousBatcher::recomputeMillis)
                                .max()
                                .orElse(0)
                        > swapPauseMs;
        if (isBeside) {
            parts.forEach(part -> part.beginWith(version));
        } else {
            parts.forEach(part -> part.continueWith(version));
        }
        return isBeside;
    }

    /** Takes the results recomputed in parallel to sampling; returns true when no recomputation is running. */
    boolean takeRenewed() {
        boolean isOver = true;
        for (ContinuousBatcher part : parts) {
            isOver &= part.takeRenewed();
        }
        return isOver;
    }

    /**
     * Recomputes sequences of other weights in parallel to sampling. Between two calls.
     *
     * @param weights of {@code version}, the newest
     */
    void renew(Weights weights, long version) {
        parts.forEach(part -> part.renew(weights, version));
    }

    /**
     * Keeps what the slots hold of finished sequences, see {@link ContinuousBatcher#keepPrefixes}.
     *
     * @param mostBytes of memory for all engine threads
     */
    void keepPrefixes(long mostBytes) {
        PrefixCache all = new PrefixCache(mostBytes);
        prefixes = all;
        parts.forEach(part -> part.keepPrefixes(all));
    }

    int active() {
        return parts.stream().mapToInt(ContinuousBatcher::active).sum();
    }

    boolean hasRoom() {
        return parts.stream().anyMatch(ContinuousBatcher::hasRoom);
    }

    /** Tokens sampled for rollouts so far; dropped ones do not count. */
    long sampledTokens() {
        return sum(ContinuousBatcher::sampledTokens);
    }

    /** Known tokens that went through the engine so far: prompts, what environments said, and sequences computed again. */
    long forcedTokens() {
        return sum(ContinuousBatcher::forcedTokens);
    }

    /** Tokens of prompts that did not have to, since another slot held them. */
    long copiedTokens() {
        return sum(ContinuousBatcher::copiedTokens);
    }

    private long sum(ToLongFunction<ContinuousBatcher> of) {
        return parts.stream().mapToLong(of).sum();
    }

    /** From now on a version may stand for other weights than it did; no sequence is in a slot. */
    void forgetVersions() {
        parts.forEach(ContinuousBatcher::forgetVersions);
        if (prefixes != null) {
            prefixes.forget();
        }
    }

    /** Puts a sequence into a free slot, next to one of the same prompt where there is room, else into the emptiest part. */
    void add(RunningSequence sequence) {
        parts.stream()
                .filter(ContinuousBatcher::hasRoom)
                .min(Comparator.comparing((ContinuousBatcher part) -> !part.holds(other ->
                                other.prompt().tokens() == sequence.prompt().tokens()))
                        .thenComparingInt(ContinuousBatcher::active))
                .orElseThrow()
                .add(sequence);
    }

    /**
     * Advances every sequence that does not wait for its environment, and hands over those that are finished.
     *
     * @param weights of {@code version}
     * @return false if there was nothing to do: all wait
     */
    boolean advance(Weights weights, long version, Consumer<RunningSequence> finished) {
        return advance(weights, version, every -> true, finished);
    }

    /**
     * As above, for some sequences.
     *
     * @param who continues under this version; the others stay as they are
     */
    boolean advance(Weights weights, long version, Predicate<RunningSequence> who, Consumer<RunningSequence> finished) {
        boolean any = false;
        for (ContinuousBatcher part : parts) {
            any |= part.hear(finished);
        }
        List<CompletableFuture<Boolean>> others = new ArrayList<>();
        for (ContinuousBatcher part : parts.subList(1, parts.size())) {
            if (part.active() > 0) {
                others.add(CompletableFuture.supplyAsync(() -> part.compute(weights, version, who), threads));
            }
        }
        RuntimeException failure = null;
        try {
            any |= parts.get(0).compute(weights, version, who);
        } catch (RuntimeException e) {
            failure = e;
        }
        for (CompletableFuture<Boolean> other : others) { // all, also behind a failure: nobody may compute any longer
            try {
                any |= other.join();
            } catch (CompletionException e) {
                failure = e.getCause() instanceof RuntimeException cause ? cause : e;
            }
        }
        if (failure != null) {
            throw failure;
        }
        parts.forEach(part -> part.take(version, finished));
        return any;
    }

    /** Oldest version of any token sampled for a sequence that is not finished; empty if there is none. */
    OptionalLong oldestVersion() {
        return parts.stream()
                .map(ContinuousBatcher::oldestVersion)
                .flatMapToLong(OptionalLong::stream)
                .min();
    }

    boolean holds(Predicate<RunningSequence> which) {
        return parts.stream().anyMatch(part -> part.holds(which));
    }

    /** Gives up every sequence whose prompt came from one of these partitions. */
    void revoke(Set<TopicPartition> partitions) {
        parts.forEach(part -> part.revoke(partitions));
    }

    void drop(RunningSequence sequence) {
        parts.forEach(part -> part.drop(sequence));
    }

    void dropAll() {
        parts.forEach(ContinuousBatcher::dropAll);
    }

    @Override
    public void close() {
        threads.shutdown();
        parts.forEach(ContinuousBatcher::close); // which waits for what is renewed
        renewing.shutdown();
    }
}
