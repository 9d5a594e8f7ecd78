package dev.millrace.generator.sampling;

import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.KnownTokens;
import dev.millrace.policy.session.SpareSlots;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Recomputes keys and values of sequences in flight under newer weights, in spare slots on another thread, while the sequences continue
 * under their own weights.
 *
 * <p>It takes a few sequences at a time, shortest first. A sequence pauses only for its last piece ({@link RecomputedPieces}), then
 * continues under the newer weights from the recomputed cache, with the bits of a full recomputation. A sequence that waits for its
 * environment is finished after the answer.
 *
 * <p>Owned by the slots' owner. Work of the other thread must not be touched before it is done.
 */
final class CacheRenewal implements AutoCloseable {
    private final DecodeSession session;
    private final Intake intake;
    private final RecomputedPieces cut;
    private final int pieceTokens;
    private final Executor executor;
    private final int places; // for one sequence, or for the tokens of one piece
    private final List<Renewed> underWay = new ArrayList<>();
    private @Nullable SpareSlots spare;
    private @Nullable CompletableFuture<Void> task;
    private long version = -1; // of the weights that it is computed under
    private long takenTokens;
    private long copiedTokens;

    private static final class Renewed {
        final RunningSequence sequence;
        final int slot;
        final int place;
        boolean isLast; // the task under way ends with its last piece

        Renewed(RunningSequence sequence, int slot, int place) {
            this.sequence = sequence;
            this.slot = slot;
            this.place = place;
        }
    }

    /** @param intake of the session, which knows whose prompts its slots hold */
    CacheRenewal(DecodeSession session, Intake intake, int pieceTokens, Executor executor) {
        this.session = session;
        this.intake = intake;
        this.cut = new RecomputedPieces(pieceTokens);
        this.pieceTokens = pieceTokens;
        this.executor = executor;
        this.places = Math.min(session.slots(), Math.max(1, pieceTokens / session.capacityTokens()));
    }

    /** Tokens that were computed again. */
    long takenTokens() {
        return takenTokens;
    }

    /** Tokens of prompts that did not have to be. */
    long copiedTokens() {
        return copiedTokens;
    }

    /**
     * Moves computed caches into the slots' sequences.
     *
     * @return whether nothing is being computed any more
     */
    boolean take(RunningSequence[] running, long[] heldVersion) {
        CompletableFuture<Void> done = task;
        if (done == null) {
            return true;
        }
        if (!done.isDone()) {
            return false;
        }
        task = null;
        try {
            done.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : e;
        }
        underWay.removeIf(each -> {
            RunningSequence sequence = each.sequence;
            boolean isThere = running[each.slot] == sequence;
            if (isThere && each.isLast) {
                spareSlots().take(each.place, each.slot, sequence.sequenceToken(sequence.known() - 1));
                sequence.hold(sequence.known());
                sequence.continueWith(version);
                heldVersion[each.slot] = version;
                intake.renewed(each.slot, sequence, version);
            }
            return !isThere || each.isLast;
        });
        return true;
    }

    /**
     * Starts recomputing sequences with caches of older weights, unless the other thread is busy.
     *
     * @param weights of {@code newest}, the same as long as something is being computed
     */
    void renew(Weights weights, long newest, RunningSequence[] running, long[] heldVersion) {
        if (!take(running, heldVersion)) {
            return;
        }
        if (newest != version) {
            underWay.clear();
            version = newest;
        }
        choose(running, heldVersion);
        List<List<KnownTokens>> pieces = underWay.stream().map(this::piecesOf).toList();
        List<Renewed> last = underWay.stream().filter(each -> each.isLast).toList();
        if (last.isEmpty() && pieces.stream().allMatch(List::isEmpty)) {
            return;
        }
        SpareSlots into = spareSlots();
        task = CompletableFuture.runAsync(
                () -> {
                    compute(into, weights, pieces);
                    last.forEach(each -> into.write(each.place, each.slot));
                },
                executor);
    }

    /** Those to be computed, first the ones with the fewest tokens: they cost least, and have most before them. */
    private void choose(RunningSequence[] running, long[] heldVersion) {
        List<Integer> candidates = IntStream.range(0, running.length)
                .filter(slot -> isOutdated(running[slot], heldVersion[slot]))
                .boxed()
                .sorted(Comparator.comparingInt(slot -> running[slot].known()))
                .toList();
        if (!candidates.isEmpty()) {
            underWay.removeIf(each -> each.sequence.waits());
        }
        int tokens = underWay.stream().mapToInt(each -> each.sequence.known()).sum();
        for (int slot : candidates) {
            RunningSequence sequence = running[slot];
            boolean isNew = underWay.stream()
                    .noneMatch(each -> each.sequence == sequence // or its prompt is copied when that one's is there
                            || Arrays.equals(
                                    each.sequence.prompt().tokens(),
                                    sequence.prompt().tokens()));
            boolean fits = underWay.isEmpty() || underWay.size() < places && tokens + sequence.known() <= pieceTokens;
            if (isNew && fits) {
                tokens += sequence.known();
                begin(new Renewed(sequence, slot, freePlace()));
            }
        }
    }

    private boolean isOutdated(@Nullable RunningSequence sequence, long heldVersion) {
        return sequence != null && !sequence.waits() && heldVersion >= 0 && sequence.under() != version;
    }

    private int freePlace() {
        return IntStream.range(0, places)
                .filter(place -> underWay.stream().noneMatch(each -> each.place == place))
                .findFirst()
                .orElseThrow();
    }

    private void begin(Renewed renewed) {
        int[] prompt = renewed.sequence.prompt().tokens();
        int holder = intake.holder(prompt, version);
        if (holder >= 0) {
            spareSlots().copyFrom(holder, renewed.place, prompt.length, prompt[prompt.length - 1]);
            copiedTokens += prompt.length - 1L;
        } else {
            spareSlots().reset(renewed.place, prompt[0]);
        }
        underWay.add(renewed);
    }

    /** Whole pieces as long as there are any; with the last of them, or after them, what the sequence stands still for. */
    private List<KnownTokens> piecesOf(Renewed renewed) {
        RunningSequence sequence = renewed.sequence;
        int prompt = sequence.prompt().tokens().length;
        int known = sequence.known();
        int position = spareSlots().position(renewed.place);
        int held = cut.takenUp(prompt, position, known);
        if (held < position) {
            spareSlots().cut(renewed.place, held, sequence.sequenceToken(held - 1));
        }
        boolean isShort = cut.isShort(held, known);
        List<KnownTokens> pieces = new ArrayList<>();
        for (int count = cut.nextWhole(prompt, held, known); count > 0; count = cut.nextWhole(prompt, held, known)) {
            pieces.add(piece(renewed, held, count));
            held += count;
        }
        if ((pieces.isEmpty() || isShort) && !sequence.waits()) {
            renewed.isLast = true;
            sequence.continueWith(RunningSequence.STANDS);
            if (known > held) {
                pieces.add(piece(renewed, held, known - held));
            }
        }
        return pieces;
    }

    private KnownTokens piece(Renewed renewed, int from, int count) {
        takenTokens += count;
        return new KnownTokens(
                renewed.place,
                IntStream.range(from, from + count)
                        .map(renewed.sequence::sequenceToken)
                        .toArray());
    }

    private static void compute(SpareSlots into, Weights weights, List<List<KnownTokens>> pieces) {
        int most = pieces.stream().mapToInt(List::size).max().orElse(0);
        for (int i = 0; i < most; i++) {
            int at = i;
            into.prefill(
                    weights,
                    pieces.stream()
                            .filter(its -> its.size() > at)
                            .map(its -> its.get(at))
                            .toList());
        }
    }

    /** A slot's sequence is gone; on return nobody writes into the slot. */
    void left(int slot) {
        if (underWay.stream().anyMatch(each -> each.slot == slot && each.isLast)) {
            awaitTask();
        }
    }

    private void awaitTask() {
        CompletableFuture<Void> running = task;
        if (running != null) {
            running.handle((nothing, failure) -> true).join(); // what failed is told to who takes it
        }
    }

    private SpareSlots spareSlots() {
        SpareSlots there = spare;
        if (there == null) {
            there = session.spare(places);
            spare = there;
        }
        return there;
    }

    @Override
    public void close() {
        awaitTask();
        if (spare != null) {
            spare.close();
        }
    }
}
