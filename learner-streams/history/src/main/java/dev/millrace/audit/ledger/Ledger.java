package dev.millrace.audit.ledger;

import dev.millrace.audit.ledger.Balance.OldestPending;
import dev.millrace.audit.ledger.Ledger.RolloutEnds.Kind;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.schemas.LogCoordinates;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;

/**
 * Accumulates what the topics say about rollouts into a {@link Balance}.
 *
 * <p>A rollout is identified by its position, so repeated rollout ids stay distinct. Decisions are added before
 * rollouts, so one byte per record suffices (see {@link PlaceStates}). Not thread-safe.
 */
public final class Ledger {
    static final int NAMED_CONTRADICTIONS = 20;
    private static final String FOR_SCORE = "a score";
    private static final String FOR_BATCH = "its group or batch";
    private static final String FOR_STEP = "a step on its batch";

    private static final class Counter {
        private final long[] byEnd = new long[RolloutEnds.COUNT];
        private long generated;
        private long unscored;
        private long scored;
        private long expired;
        private long superseded;
    }

    private record Place(int partition, long offset) {
        @Override
        public String toString() {
            return "rollouts-" + partition + "@" + offset;
        }
    }

    /** A sentence, prefixed with the rollout id once its record is read. */
    private record Contradiction(@Nullable Place place, String sentence) {}

    private final RolloutEnds ends = new RolloutEnds();
    private final int epoch;
    private final PlaceStates states;
    private final SortedMap<RolloutOrigin, Counter> counters = new TreeMap<>();
    private final List<Contradiction> contradictions = new ArrayList<>();
    private final Map<Place, String> names = new HashMap<>();
    private final Map<String, OldestPending> oldest = new LinkedHashMap<>();
    private final Map<String, Long> otherDeadLetters = new TreeMap<>();
    private final Map<String, Long> copies = new TreeMap<>();
    private final Map<String, Long> strays = new TreeMap<>();
    private long contradictionCount;
    private long expiredBeforeMs = Long.MIN_VALUE;
    private long deletedDecisions;
    private long redriven;
    private boolean recordsBegun;

    /**
     * @param rollouts offsets of each rollouts partition to examine
     * @param epoch current epoch; rollouts in flight of older ones are superseded
     */
    public Ledger(Map<Integer, OffsetRange> rollouts, int epoch) {
        this.epoch = epoch;
        this.states = new PlaceStates(rollouts);
    }

    /** Decisions before this time may be deleted: older rollouts without one are not in flight. */
    public void decisionsKeptSince(long timestampMs) {
        expiredBeforeMs = Math.max(expiredBeforeMs, timestampMs);
    }

    /**
     * @param maskedBy stage that masked its last token, empty if it had none; null if some are trained
     * @param stepped whether the batch was trained on
     */
    public void batched(int partition, long offset, long batchId, @Nullable String maskedBy, boolean stepped) {
        int end = !stepped
                ? RolloutEnds.BATCHED
                : maskedBy == null
                        ? RolloutEnds.TRAINED
                        : ends.of(Kind.MASKED, maskedBy.isEmpty() ? "its own mask" : maskedBy);
        decide("batches", partition, offset, end, "batch " + batchId + " takes it");
    }

    public void dropped(int partition, long offset, String reason) {
        decide("outcomes", partition, offset, ends.of(Kind.DROPPED, reason), "it is dropped as " + reason);
    }

    /** Replaces an earlier outcome. */
    void droppedAfterAll(int partition, long offset, String reason) {
        states.setEnd(partition, offset, ends.of(Kind.DROPPED, reason));
    }

    boolean isBatched(int partition, long offset) {
        if (!states.holds(partition, offset)) {
            return false;
        }
        int end = states.end(partition, offset);
        return end == RolloutEnds.BATCHED || end == RolloutEnds.TRAINED || ends.is(end, Kind.MASKED);
    }

    boolean isDecided(RolloutPlace rollout) {
        return states.holds(rollout.partition(), rollout.offset())
                && states.end(rollout.partition(), rollout.offset()) != RolloutEnds.NONE;
    }

    boolean isDropped(RolloutPlace rollout) {
        return states.holds(rollout.partition(), rollout.offset())
                && ends.is(states.end(rollout.partition(), rollout.offset()), Kind.DROPPED);
    }

    /** Counts a byte-equal copy of a record of this topic. */
    public void copy(String topic) {
        copies.merge(topic, 1L, Long::sum);
    }

    public boolean deadLettered(int partition, long offset, String reason) {
        int end = ends.of(Kind.DEAD_LETTERED, reason);
        if (states.holds(partition, offset) && states.end(partition, offset) == end) {
            return false;
        }
        decide("dead-letters", partition, offset, end, "it is dead-lettered for " + reason);
        return true;
    }

    /**
     * A dead letter whose source is a trajectory of this rollout record. Call after batches and outcomes: if one of
     * them has the rollout, a second trajectory of it was refused, which a foreign producer wrote.
     */
    public void trajectoryDeadLettered(int partition, long offset, String reason) {
        if (states.holds(partition, offset) && states.end(partition, offset) == RolloutEnds.NONE) {
            states.setEnd(partition, offset, ends.of(Kind.DEAD_LETTERED, reason));
        }
    }

    /** A dead letter of anything else. */
    public void otherDeadLetter(String topic) {
        otherDeadLetters.merge(topic, 1L, Long::sum);
    }

    /** The dead letter of anything else was redriven. */
    public void otherRedriven(String topic) {
        otherDeadLetters.merge(topic, -1L, Long::sum);
    }

    /** The dead letter of a rollout record was redriven, to lie at {@code newOffset} of the same partition. */
    public void redriven(int partition, long offset, long newOffset) {
        if (!states.holds(partition, newOffset)) {
            return; // committed just now: until its record is visible, the letter counts
        }
        redriven++;
        undo(partition, offset, RolloutEnds.SUPERSEDED);
    }

    /** The dead letter of a trajectory of this rollout record was redriven. */
    public void trajectoryRedriven(int partition, long offset) {
        undo(partition, offset, RolloutEnds.NONE);
    }

    private void undo(int partition, long offset, int end) {
        if (states.holds(partition, offset)
                && (states.end(partition, offset) == RolloutEnds.NONE
                        || ends.is(states.end(partition, offset), Kind.DEAD_LETTERED))) {
            states.setEnd(partition, offset, end);
        }
    }

    public void scored(int partition, long offset) {
        if (states.holds(partition, offset)) {
            states.mark(partition, offset, PlaceStates.SCORED);
        } else if (!states.isPlace(partition, offset)) {
            stray("scores");
        }
    }

    /** A record of this topic that names no position on the rollouts topic. */
    private void stray(String topic) {
        strays.merge(topic, 1L, Long::sum);
    }

    private void decide(String topic, int partition, long offset, int end, String sentence) {
        if (recordsBegun) {
            throw new IllegalStateException("decisions precede the rollouts' own records");
        }
        if (!states.isPlace(partition, offset)) {
            stray(topic);
            return;
        }
        if (!states.holds(partition, offset)) {
            if (states.isDeleted(partition, offset)) {
                deletedDecisions++;
            } else {
                contradict(new Place(partition, offset), sentence + ", beyond the end of the topic");
            }
            return;
        }
        int before = states.end(partition, offset);
        if (before == RolloutEnds.NONE) {
            states.setEnd(partition, offset, end);
        } else {
            contradict(new Place(partition, offset), sentence + ", and it is already " + ends.text(before));
        }
    }

    /** Adds another contradiction; one sentence. */
    public void contradict(String sentence) {
        contradict(null, sentence);
    }

    private void contradict(@Nullable Place place, String sentence) {
        contradictionCount++;
        if (contradictions.size() < NAMED_CONTRADICTIONS) {
            contradictions.add(new Contradiction(place, sentence));
            if (place != null) {
                names.put(place, "");
            }
        }
    }

    /**
     * A record on the rollouts topic.
     *
     * @param rolloutId empty if it cannot be read, or is of another run
     * @return whether it has a score
     */
    public boolean rollout(int partition, long offset, RolloutOrigin origin, String rolloutId, long timestampMs) {
        recordsBegun = true;
        if (!names.isEmpty()) {
            names.computeIfPresent(new Place(partition, offset), (place, unknown) -> rolloutId);
        }
        states.mark(partition, offset, PlaceStates.PRESENT);
        int end = states.end(partition, offset);
        boolean scored = states.has(partition, offset, PlaceStates.SCORED);
        if (end == RolloutEnds.SUPERSEDED) {
            return scored;
        }
        Counter counter = counters.computeIfAbsent(origin, unseen -> new Counter());
        counter.generated++;
        boolean isOfOlderEpoch = origin.epoch() >= 0 && origin.epoch() < epoch;
        if (end == RolloutEnds.BATCHED && isOfOlderEpoch) {
            counter.superseded++;
        } else if (end != RolloutEnds.NONE) {
            counter.byEnd[end]++;
            if (end == RolloutEnds.BATCHED) {
                waits(FOR_STEP, rolloutId, timestampMs);
            }
        } else if (timestampMs < expiredBeforeMs) {
            counter.expired++;
        } else if (isOfOlderEpoch) {
            counter.superseded++;
        } else if (scored) {
            counter.scored++;
            waits(FOR_BATCH, rolloutId, timestampMs);
        } else {
            counter.unscored++;
            waits(FOR_SCORE, rolloutId, timestampMs);
        }
        return scored;
    }

    private void waits(String stage, String rolloutId, long sinceMs) {
        OldestPending longest = oldest.get(stage);
        if (longest == null || sinceMs < longest.sinceMs()) {
            oldest.put(stage, new OldestPending(stage, rolloutId, sinceMs));
        }
    }

    /**
     * Computes the balance.
     *
     * @param keptFrom current log start offset of each partition; retention may have deleted records during the read
     * @param gaps sentences about deleted parts of the log
     */
    public Balance balance(Map<Integer, Long> keptFrom, List<String> gaps) {
        states.forEachEnd((partition, offset, end, present) -> {
            if (!present && offset >= keptFrom.getOrDefault(partition, 0L)) {
                contradict(new Place(partition, offset), "it is " + ends.text(end) + ", and there is no record");
            }
        });
        List<String> allGaps = new ArrayList<>(gaps);
        if (deletedDecisions > 0) {
            allGaps.add(String.format(
                    Locale.ROOT, "the rollouts of %,d decisions were deleted by retention", deletedDecisions));
        }
        SortedMap<RolloutOrigin, Tally> tallies = new TreeMap<>();
        counters.forEach((origin, counter) -> tallies.put(origin, tally(counter)));
        otherDeadLetters.values().removeIf(count -> count <= 0);
        return new Balance(
                tallies,
                redriven,
                new Balance.Unmatched(copies, strays, otherDeadLetters),
                List.copyOf(oldest.values()),
                contradictions.stream().map(this::sentence).toList(),
                contradictionCount,
                allGaps);
    }

    private Tally tally(Counter counter) {
        return new Tally(
                counter.generated,
                counter.byEnd[RolloutEnds.TRAINED],
                ends.counts(Kind.MASKED, counter.byEnd),
                ends.counts(Kind.DROPPED, counter.byEnd),
                ends.counts(Kind.DEAD_LETTERED, counter.byEnd),
                new Tally.Unfinished(
                        counter.unscored,
                        counter.scored,
                        counter.byEnd[RolloutEnds.BATCHED],
                        counter.expired,
                        counter.superseded));
    }

    private String sentence(Contradiction contradiction) {
        if (contradiction.place() == null) {
            return contradiction.sentence();
        }
        String name = names.getOrDefault(contradiction.place(), "");
        return (name.isEmpty() ? "" : "rollout " + name + " at ") + contradiction.place() + ": "
                + contradiction.sentence();
    }

    /**
     * One byte for each offset of a topic: an end (see {@link RolloutEnds}) and two marks.
     *
     * <p>Takes {@code 1 byte × (end − begin)} of each partition, in chunks of 64 KiB, allocated on first write. Offsets
     * of transaction markers count too. Not thread-safe.
     */
    static final class PlaceStates {
        private static final int PIECE_BITS = 16;
        private static final int END_MASK = RolloutEnds.COUNT - 1;
        /** A score of the record is on the log. */
        static final int SCORED = 0x40;
        /** The record itself is on the log. */
        static final int PRESENT = 0x80;

        /** Returns the state of a position. */
        interface Visitor {
            void visit(int partition, long offset, int end, boolean present);
        }

        private record Partition(OffsetRange range, byte[][] pieces) {}

        private final Map<Integer, Partition> partitions = new HashMap<>();

        PlaceStates(Map<Integer, OffsetRange> ranges) {
            ranges.forEach((partition, range) -> partitions.put(
                    partition, new Partition(range, new byte[piece(range.end() - range.begin()) + 1][])));
        }

        private static int piece(long index) {
            return Math.toIntExact(index >> PIECE_BITS);
        }

        /** False for a partition that the topic does not have. */
        boolean isPlace(int partition, long offset) {
            return offset >= 0 && partitions.containsKey(partition);
        }

        boolean holds(int partition, long offset) {
            Partition found = partitions.get(partition);
            return found != null && found.range().holds(offset);
        }

        /** True if the position is before the log start offset. */
        boolean isDeleted(int partition, long offset) {
            Partition found = partitions.get(partition);
            return found != null && offset < found.range().begin();
        }

        int end(int partition, long offset) {
            return state(partition, offset) & END_MASK;
        }

        boolean has(int partition, long offset, int mark) {
            return (state(partition, offset) & mark) != 0;
        }

        void setEnd(int partition, long offset, int end) {
            put(partition, offset, state(partition, offset) & ~END_MASK | end);
        }

        void mark(int partition, long offset, int mark) {
            put(partition, offset, state(partition, offset) | mark);
        }

        /** In order. */
        void forEachEnd(Visitor visitor) {
            partitions.forEach((partition, stretch) -> {
                for (int p = 0; p < stretch.pieces().length; p++) {
                    byte[] piece = stretch.pieces()[p];
                    for (int i = 0; piece != null && i < piece.length; i++) {
                        if ((piece[i] & END_MASK) != 0) {
                            visitor.visit(
                                    partition,
                                    stretch.range().begin() + ((long) p << PIECE_BITS) + i,
                                    piece[i] & END_MASK,
                                    (piece[i] & PRESENT) != 0);
                        }
                    }
                }
            });
        }

        private int state(int partition, long offset) {
            Partition found = Objects.requireNonNull(partitions.get(partition), "a partition of the topic");
            long index = offset - found.range().begin();
            byte[] piece = found.pieces()[piece(index)];
            return piece == null ? 0 : piece[(int) (index & (1 << PIECE_BITS) - 1)] & 0xff;
        }

        private void put(int partition, long offset, int state) {
            Partition found = Objects.requireNonNull(partitions.get(partition), "a partition of the topic");
            long index = offset - found.range().begin();
            int at = piece(index);
            if (found.pieces()[at] == null) {
                found.pieces()[at] = new byte[1 << PIECE_BITS];
            }
            found.pieces()[at][(int) (index & (1 << PIECE_BITS) - 1)] = (byte) state;
        }
    }

    /**
     * Numbers below {@value #COUNT} for rollout ends, so that a position takes one byte. Reasons beyond the available
     * numbers count as {@code other}.
     */
    static final class RolloutEnds {
        static final int COUNT = 64;
        /** Undecided. */
        static final int NONE = 0;
        /** In a batch without a step yet. */
        static final int BATCHED = 1;

        static final int TRAINED = 2;
        /** Refused and redriven; this record does not count. */
        static final int SUPERSEDED = 3;

        private static final int FIRST_NAMED = 4;

        enum Kind {
            MASKED("masked by "),
            DROPPED("dropped as "),
            DEAD_LETTERED("dead-lettered for ");

            private final String verb;

            Kind(String verb) {
                this.verb = verb;
            }
        }

        private record Named(Kind kind, String reason) {}

        private static final String OTHER = "other";
        private final List<Named> named = new ArrayList<>();

        RolloutEnds() {
            for (Kind kind : Kind.values()) {
                named.add(new Named(kind, OTHER));
            }
        }

        int of(Kind kind, String reason) {
            Named wanted = new Named(kind, reason);
            int known = named.indexOf(wanted);
            if (known < 0 && FIRST_NAMED + named.size() < COUNT) {
                named.add(wanted);
                known = named.size() - 1;
            }
            return FIRST_NAMED + (known < 0 ? kind.ordinal() : known);
        }

        boolean is(int end, Kind kind) {
            return end >= FIRST_NAMED && named.get(end - FIRST_NAMED).kind() == kind;
        }

        /** Counts by reason, from counts by number. */
        Map<String, Long> counts(Kind kind, long[] byEnd) {
            Map<String, Long> counts = new TreeMap<>();
            for (int i = 0; i < named.size(); i++) {
                if (named.get(i).kind() == kind && byEnd[FIRST_NAMED + i] > 0) {
                    counts.put(named.get(i).reason(), byEnd[FIRST_NAMED + i]);
                }
            }
            return counts;
        }

        String text(int end) {
            return switch (end) {
                case NONE -> "undecided";
                case BATCHED -> "in a batch";
                case TRAINED -> "trained on";
                case SUPERSEDED -> "redriven";
                default ->
                    named.get(end - FIRST_NAMED).kind().verb
                            + named.get(end - FIRST_NAMED).reason();
            };
        }
    }

    record RolloutPlace(int partition, long offset) {
        private static final Pattern PLACE = Pattern.compile("(\\d{1,9})@(\\d{1,18})");

        static RolloutPlace of(LogCoordinates source) {
            return new RolloutPlace(source.getPartition(), source.getOffset());
        }

        /** Empty if the text is not a position. */
        static Optional<RolloutPlace> parse(String text) {
            Matcher place = PLACE.matcher(text);
            return place.matches()
                    ? Optional.of(new RolloutPlace(Integer.parseInt(place.group(1)), Long.parseLong(place.group(2))))
                    : Optional.empty();
        }
    }

    /** SHA-256 of a record's value, distinguishing copies from equal names. */
    record RecordDigest(String hex) {
        static RecordDigest of(byte[] value) {
            return new RecordDigest(DigestUtils.sha256Hex(value));
        }
    }
}
