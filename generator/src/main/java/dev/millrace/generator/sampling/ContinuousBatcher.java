package dev.millrace.generator.sampling;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.DecodeInput;
import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.DecodeSteps;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;

/**
 * Continuous batching: the slots of one engine, refilled as soon as they are free.
 *
 * <p>{@link Intake} prefills prompts in pieces. Each call then advances every prefilled sequence by up to {@code
 * tokensPerCall} tokens: known tokens are forced, the others sampled. Tokens beyond a sequence's end or beyond a
 * reaction of the environment are dropped, and the slot is set back. Weights may change with every call; a token has
 * the version of its call.
 *
 * <p>Not thread-safe.
 */
final class ContinuousBatcher implements AutoCloseable {
    private final DecodeSession session;
    private final PreparedWeights prepared;
    private final Intake intake;
    private final DecodeInput input;
    private final Slots occupied;
    private final RunningSequence[] slots; // of these
    private final CacheOnSwap cacheOnSwap;
    private final CacheRenewal renewal;
    private final IntakeSpeed speed = new IntakeSpeed();
    private final int[] knownBefore;
    private final boolean[] advancing; // in the call that is being prepared
    private final boolean[] taking; // known tokens in before that
    private final long[] heldVersion; // under which the slot's keys and values were made; -1 before its first call
    private final boolean[] mixed; // some of them were made under another version before
    private @Nullable KeptPrefixes prefixes;
    private @Nullable DecodeSteps computed; // between compute and take
    private long sampledTokens;
    private long forcedTokens;

    ContinuousBatcher(Engine engine, DecoderShape shape, GeneratorConfig config) {
        this(engine, shape, config, config.prepared(engine), Runnable::run);
    }

    /**
     * @param prepared of the configured precision; loaders of weights may add to them
     * @param executor recomputes keys and values in parallel to sampling
     */
    ContinuousBatcher(
            Engine engine, DecoderShape shape, GeneratorConfig config, PreparedWeights prepared, Executor executor) {
        this.prepared = prepared;
        this.session = new DecodeSession(
                engine, shape, config.slots(), config.capacityTokens(), config.tokensPerCall(), prepared);
        this.intake = new Intake(session, config.prefillChunkTokens(), config.prefillTokensPerCall());
        this.renewal = new CacheRenewal(session, intake, config.prefillChunkTokens(), executor);
        this.input = new DecodeInput(config.slots(), config.tokensPerCall());
        this.occupied = new Slots(config.slots());
        this.slots = occupied.running();
        this.knownBefore = new int[config.slots()];
        this.advancing = new boolean[config.slots()];
        this.taking = new boolean[config.slots()];
        this.heldVersion = new long[config.slots()];
        this.mixed = new boolean[config.slots()];
        this.cacheOnSwap = config.cacheOnSwap();
    }

    /**
     * Keeps the caches of finished sequences. A sequence whose prompt has a cached prefix of its version prefills
     * only the rest; its log-probs may differ in the last bits from those of the whole prompt.
     */
    void keepPrefixes(PrefixCache cache) {
        prefixes = new KeptPrefixes(session, cache);
    }

    int active() {
        return occupied.active();
    }

    boolean hasRoom() {
        return occupied.hasRoom();
    }

    /** Tokens sampled so far, without dropped ones. */
    long sampledTokens() {
        return sampledTokens;
    }

    /** Known tokens prefilled so far: prompts, environment text, recomputed sequences. */
    long forcedTokens() {
        return forcedTokens + intake.takenTokens() + renewal.takenTokens();
    }

    /** Prompt tokens copied from another slot or the prefix cache. */
    long copiedTokens() {
        return intake.copiedTokens() + renewal.copiedTokens() + (prefixes == null ? 0 : prefixes.reusedTokens());
    }

    /** Forgets which versions caches belong to, since a version number may be reused. Requires empty slots. */
    void forgetVersions() {
        intake.forget();
        prepared.forget();
    }

    void add(RunningSequence sequence) {
        int slot = occupied.put(sequence);
        heldVersion[slot] = -1;
        mixed[slot] = false;
        intake.begin(slot, 1);
        hold(slot, sequence);
        if (prefixes != null && sequence.under() >= 0 && prefixes.load(slot, sequence)) {
            intake.begin(slot, sequence.held());
            heldVersion[slot] = sequence.under();
        }
    }

    private void hold(int slot, RunningSequence sequence) {
        session.reset(slot, sequence.sequenceToken(0));
        sequence.hold(1);
        sequence.reuse(0);
    }

    /** Estimated time to recompute all keys and values, from the measured prefill speed. */
    double recomputeMillis() {
        long tokens = 0;
        Set<int[]> prompts = Collections.newSetFromMap(new IdentityHashMap<>()); // samples of a group have the same one
        for (int slot = 0; slot < slots.length; slot++) {
            RunningSequence sequence = slots[slot];
            if (sequence != null && heldVersion[slot] >= 0) {
                int[] prompt = sequence.prompt().tokens();
                tokens += sequence.known() - prompt.length + (prompts.add(prompt) ? prompt.length : 0);
            }
        }
        return speed.millisFor(tokens);
    }

    /** Continues every sequence with new weights; recomputes or keeps its cache by {@code cache_on_swap}. */
    void continueWith(long version) {
        for (RunningSequence sequence : slots) {
            if (sequence != null) {
                sequence.continueWith(version);
            }
        }
    }

    /**
     * Changes only sequences without a cache worth recomputing; the others continue unchanged until {@link #renew
     * renewed}.
     */
    void beginWith(long version) {
        for (int slot = 0; slot < slots.length; slot++) {
            RunningSequence sequence = slots[slot];
            if (sequence != null) {
                boolean isNew = heldVersion[slot] < 0;
                boolean isTakenIn = sequence.length() > 0 || sequence.held() == sequence.known();
                if (isNew || !isTakenIn || sequence.known() <= session.tokensPerCall()) {
                    sequence.continueWith(version);
                }
            }
        }
    }

    /** Takes the results recomputed in parallel to sampling; returns true when no recomputation is running. */
    boolean takeRenewed() {
        return renewal.take(slots, heldVersion);
    }

    /**
     * Recomputes sequences of other weights in parallel to sampling. Between two calls, by the owner.
     *
     * @param weights of {@code version}, the newest
     */
    void renew(Weights weights, long version) {
        renewal.renew(weights, version, slots, heldVersion);
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
        boolean heard = hear(finished);
        boolean went = compute(weights, version, who);
        take(version, finished);
        return heard || went;
    }

    /**
     * Computes one call without side effects on environments: the part of {@link #advance} that another thread may
     * run, between {@link #hear} and {@link #take}.
     *
     * @return whether there was anything to compute
     */
    boolean compute(Weights weights, long version, Predicate<RunningSequence> who) {
        computed = null;
        boolean taken = takeKnown(weights, version, who);
        if (prepare()) {
            computed = session.advance(weights, input);
        }
        return taken || computed != null;
    }

    /** Applies the computed steps to the sequences, and hands over finished ones. */
    void take(long version, Consumer<RunningSequence> finished) {
        DecodeSteps done = computed;
        computed = null;
        for (int slot = 0; done != null && slot < slots.length; slot++) {
            if (advancing[slot]) {
                take(slot, done, version);
                emitIfFinished(slot, finished);
            }
        }
    }

    private void emitIfFinished(int slot, Consumer<RunningSequence> finished) {
        RunningSequence sequence = slots[slot];
        if (sequence.finishReason() != null) {
            if (sequence.recordsRouting()) {
                session.routing(slot, sequence.held()).ifPresent(sequence::routed);
            }
            if (prefixes != null && heldVersion[slot] >= 0 && !mixed[slot]) { // one version alone made it
                prefixes.keep(slot, sequence, heldVersion[slot]);
            }
            free(slot);
            finished.accept(sequence);
        }
    }

    /** Polls the environments of waiting sequences; true if one has reacted. */
    boolean hear(Consumer<RunningSequence> finished) {
        boolean heard = false;
        for (int slot = 0; slot < slots.length; slot++) {
            RunningSequence sequence = slots[slot];
            if (sequence != null && sequence.waits()) {
                sequence.stepEnvironment();
                heard |= !sequence.waits();
                emitIfFinished(slot, finished);
            }
        }
        return heard;
    }

    /** Selects the sequences to prefill and those to advance; prefills a part. */
    private boolean takeKnown(Weights weights, long version, Predicate<RunningSequence> who) {
        boolean any = false;
        for (int slot = 0; slot < slots.length; slot++) {
            RunningSequence sequence = slots[slot];
            boolean goesOn = sequence != null && !sequence.waits() && who.test(sequence);
            taking[slot] = false;
            if (goesOn) {
                boolean isSwapped = heldVersion[slot] >= 0 && heldVersion[slot] != version;
                if (isSwapped && cacheOnSwap == CacheOnSwap.RECOMPUTE) {
                    intake.restart(slot, sequence.known());
                    hold(slot, sequence);
                } else if (isSwapped) {
                    mixed[slot] = true;
                }
                heldVersion[slot] = version;
                taking[slot] = intake.isDue(slot, sequence);
                any |= taking[slot];
            }
            advancing[slot] = goesOn;
        }
        if (any) {
            long before = intake.takenTokens();
            long from = System.nanoTime();
            intake.take(weights, version, slots, taking);
            speed.took(intake.takenTokens() - before, System.nanoTime() - from);
        }
        for (int slot = 0; slot < slots.length; slot++) {
            advancing[slot] = advancing[slot] && !(taking[slot] && intake.isDue(slot, slots[slot]));
        }
        return any;
    }

    private boolean prepare() {
        boolean any = false;
        input.clear();
        for (int slot = 0; slot < slots.length; slot++) {
            RunningSequence sequence = slots[slot];
            if (!advancing[slot]) {
                continue;
            }
            any = true;
            int held = sequence.held();
            int known = sequence.known();
            knownBefore[slot] = known;
            int steps = Math.min(session.tokensPerCall(), sequence.limit() - held);
            input.activate(slot, steps, sequence.sampling());
            for (int step = 0; step < steps; step++) {
                int position = held + step;
                if (position < known) {
                    input.force(step, slot, sequence.sequenceToken(position));
                } else {
                    input.sample(step, slot, sequence.uniform(position));
                }
            }
        }
        return any;
    }

    private void take(int slot, DecodeSteps done, long version) {
        RunningSequence sequence = slots[slot];
        int held = sequence.held();
        int steps = done.steps(slot);
        int forced = Math.min(steps, knownBefore[slot] - held);
        forcedTokens += forced;
        for (int step = forced; step < steps; step++) {
            sampledTokens++;
            sequence.note(done, step, slot);
            boolean goesOn = sequence.sampled(
                    done.token(step, slot), done.logProb(step, slot), done.temperatureLogProb(step, slot), version);
            if (!goesOn) {
                int keep = held + step + 1;
                if (step + 1 < steps && sequence.finishReason() == null) {
                    session.cut(slot, keep, done.token(step, slot));
                }
                sequence.hold(keep);
                return;
            }
        }
        sequence.hold(held + steps);
    }

    /** Oldest version of any token of a sequence in flight; empty without one. */
    OptionalLong oldestVersion() {
        return occupied.oldestVersion();
    }

    boolean holds(Predicate<RunningSequence> which) {
        return occupied.hold(which);
    }

    void revoke(Set<TopicPartition> partitions) {
        giveUp(sequence -> partitions.contains(sequence.prompt().partition()));
    }

    void drop(RunningSequence sequence) {
        giveUp(other -> other == sequence);
    }

    void dropAll() {
        giveUp(every -> true);
    }

    private void giveUp(Predicate<RunningSequence> which) {
        for (int slot = 0; slot < slots.length; slot++) {
            if (slots[slot] != null && which.test(slots[slot])) {
                slots[slot].abandon();
                free(slot);
            }
        }
    }

    private void free(int slot) {
        renewal.left(slot);
        occupied.free(slot);
    }

    @Override
    public void close() {
        renewal.close();
        session.close();
    }

    /** Speed of recent prefills. */
    static final class IntakeSpeed {
        private static final long REMEMBERED_TOKENS = 4096;

        private double tokens;
        private double nanos;
        private boolean isWarm;

        void took(long count, long duration) {
            if (!isWarm) {
                isWarm = true; // the first prefill includes the compilation of its graph
                return;
            }
            tokens += count;
            nanos += duration;
            if (tokens > REMEMBERED_TOKENS) {
                tokens /= 2;
                nanos /= 2;
            }
        }

        /** Estimated milliseconds for a number of tokens; infinite until measured. */
        double millisFor(long count) {
            return count == 0 ? 0 : tokens == 0 ? Double.POSITIVE_INFINITY : count * nanos / tokens / 1e6;
        }
    }

    /** Copies finished sequences from the slots of a session to the prefix cache, and prefixes of prompts back. */
    static final class KeptPrefixes {
        private final DecodeSession session;
        private final PrefixCache cache;
        private long reusedTokens;

        /** @param cache that sessions of the same weights may share */
        KeptPrefixes(DecodeSession session, PrefixCache cache) {
            this.session = session;
            this.cache = cache;
        }

        long reusedTokens() {
            return reusedTokens;
        }

        /** Loads the cached prefix of a sequence's prompt into its slot; false without one. */
        boolean load(int slot, RunningSequence sequence) {
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
         * Caches the tokens of a finished sequence.
         *
         * @param version that made it, alone
         */
        void keep(int slot, RunningSequence sequence, long version) {
            int fed = sequence.held() - 1;
            if (fed > 0) {
                int[] tokens =
                        IntStream.range(0, fed).map(sequence::sequenceToken).toArray();
                cache.keep(tokens, version, session.prefixBytes(fed), () -> session.take(slot, fed));
            }
        }
    }

    static final class Slots {
        private final RunningSequence[] running;
        private int active;
        private int emptyHint; // no empty slot is before it

        Slots(int count) {
            this.running = new RunningSequence[count];
        }

        /** Live array by slot, null for a free one; do not write. */
        RunningSequence[] running() {
            return running;
        }

        int active() {
            return active;
        }

        boolean hasRoom() {
            return active < running.length;
        }

        /** Puts a sequence into a free slot; returns the slot. */
        int put(RunningSequence sequence) {
            int slot = emptyHint;
            while (running[slot] != null) {
                slot++;
            }
            emptyHint = slot + 1;
            running[slot] = sequence;
            active++;
            return slot;
        }

        void free(int slot) {
            running[slot] = null;
            active--;
            emptyHint = Math.min(emptyHint, slot);
        }

        /** Oldest version of any sampled token; empty without one. */
        OptionalLong oldestVersion() {
            return Arrays.stream(running)
                    .filter(Objects::nonNull)
                    .map(sequence -> sequence.spans().oldest())
                    .flatMapToLong(OptionalLong::stream)
                    .min();
        }

        boolean hold(Predicate<RunningSequence> which) {
            return Arrays.stream(running).anyMatch(sequence -> sequence != null && which.test(sequence));
        }
    }
}
