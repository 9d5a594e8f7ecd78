package dev.millrace.generator.sampling;

import dev.millrace.weights.NewestWeights;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The one or two versions that sequences in flight are sampled by. The older one stays until its sequences are
 * finished ({@link WeightUpdate#MULTI_VERSION}) or recomputed ({@link CacheOnSwap#RECOMPUTE}).
 *
 * <p>While two are held, no newer version is loaded, and overtaken ones are skipped. Confined to the sampling thread.
 */
final class ResidentVersions {

    /** Where versions come from: {@link NewestWeights}, whose words these are. */
    interface Source {
        NewestWeights.Loaded current();

        void readOneAhead();

        void readOn(long version);
    }

    private final Source weights;
    private final WeightUpdate update;
    private final SlotPool batcher;
    private final GeneratorMeters meters;
    private NewestWeights.@Nullable Loaded newest;
    private NewestWeights.@Nullable Loaded older;
    private boolean updateIsDue; // new weights are there, and what is in flight keeps them from being taken up

    /** @param weights stay the caller's */
    ResidentVersions(NewestWeights weights, WeightUpdate update, SlotPool batcher, GeneratorMeters meters) {
        this(
                new Source() {
                    @Override
                    public NewestWeights.Loaded current() {
                        return weights.current();
                    }

                    @Override
                    public void readOneAhead() {
                        weights.readOneAhead();
                    }

                    @Override
                    public void readOn(long version) {
                        weights.readOn(version);
                    }
                },
                update,
                batcher,
                meters);
    }

    ResidentVersions(Source weights, WeightUpdate update, SlotPool batcher, GeneratorMeters meters) {
        this.weights = weights;
        this.update = update;
        this.batcher = batcher;
        this.meters = meters;
        if (update == WeightUpdate.MULTI_VERSION || batcher.renews()) {
            weights.readOneAhead();
        }
    }

    /**
     * Takes up the newest weights, unless sequences in flight must finish first.
     *
     * @param hasBegunGroup whether a group of samples is begun and not finished
     * @return whether they are others than before
     */
    boolean takeUp(boolean hasBegunGroup) {
        leaveOlder();
        NewestWeights.Loaded loaded = weights.current();
        boolean isNew = newest == null || loaded.version() != newest.version();
        updateIsDue = isNew && mustFinishFirst(hasBegunGroup);
        boolean takesUp = isNew && !updateIsDue;
        if (takesUp) {
            meters.serving(loaded.version(), newest != null);
            boolean keepsOlder = update == WeightUpdate.MULTI_VERSION
                    ? batcher.active() > 0
                    : update == WeightUpdate.IN_FLIGHT && batcher.continueWith(loaded.version());
            older = keepsOlder ? newest : null;
            newest = loaded;
        }
        if (older == null) {
            weights.readOn(newest().version());
        }
        return takesUp;
    }

    private boolean mustFinishFirst(boolean hasBegunGroup) {
        return switch (update) {
            case IN_FLIGHT -> older != null || !batcher.takeRenewed();
            case DRAIN -> batcher.active() > 0;
            case GROUP_END -> batcher.active() > 0 || hasBegunGroup;
            case MULTI_VERSION -> older != null;
        };
    }

    /** From now on nothing is taken up any more. */
    void stay() {
        updateIsDue = false;
    }

    /**
     * Whether a sample may be begun.
     *
     * @param ofBegunGroup that others of its group were begun before
     */
    boolean mayBegin(boolean ofBegunGroup) {
        return !updateIsDue
                || switch (update) {
                    case IN_FLIGHT, MULTI_VERSION -> true;
                    case DRAIN -> false;
                    case GROUP_END -> ofBegunGroup;
                };
    }

    /** Puts a sequence into a free slot, to begin with the newest weights that were taken up. */
    void begin(RunningSequence sequence) {
        sequence.continueWith(newest().version());
        batcher.add(sequence);
    }

    /**
     * Advances every sequence in flight under its version.
     *
     * @return false if there was nothing to do: all wait
     */
    boolean advance(Consumer<RunningSequence> finished) {
        return advance(finished, () -> {});
    }

    /**
     * The same.
     *
     * @param afterCall run after each call of the engine
     */
    boolean advance(Consumer<RunningSequence> finished, Runnable afterCall) {
        if (batcher.renews()) {
            batcher.renew(newest().weights(), newest().version());
        }
        boolean any = false;
        NewestWeights.Loaded before = older;
        if (before != null) {
            any = advance(before, finished);
            afterCall.run();
        }
        any |= advance(newest(), finished);
        afterCall.run();
        leaveOlder();
        return any;
    }

    /** Lets go of the older version where no sequence continues with it; one that waits for its environment may be renewed when it has answered. */
    private void leaveOlder() {
        NewestWeights.Loaded before = older;
        boolean mayRenew = batcher.renews();
        if (before != null
                && !batcher.holds(
                        sequence -> sequence.under() == before.version() && !(mayRenew && sequence.waits()))) {
            older = null;
        }
    }

    private boolean advance(NewestWeights.Loaded under, Consumer<RunningSequence> finished) {
        return batcher.advance(
                under.weights(), under.version(), sequence -> sequence.under() == under.version(), finished);
    }

    /** The version that sequences begin with; -1 before the first was taken up. */
    long version() {
        return newest == null ? -1 : newest.version();
    }

    /** The previous version, which finishes the sequences in flight. */
    OptionalLong olderVersion() {
        return older == null ? OptionalLong.empty() : OptionalLong.of(older.version());
    }

    /** Oldest version that sampled, or is to sample, a token of a sequence in flight; empty if there is none. */
    OptionalLong oldestInFlight() {
        OptionalLong sampled = batcher.oldestVersion();
        OptionalLong next = olderVersion();
        if (sampled.isPresent() && next.isPresent()) {
            return OptionalLong.of(Math.min(sampled.getAsLong(), next.getAsLong()));
        }
        return next.isPresent() ? next : sampled;
    }

    private NewestWeights.Loaded newest() {
        return Objects.requireNonNull(newest, "weights are loaded before sampling starts");
    }
}
