package dev.millrace.generator.staleness;

import dev.millrace.schemas.AdmissionCounts;
import dev.millrace.schemas.rollout.SampleName;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;

/**
 * Released and unsettled samples, by name.
 *
 * <p>A sample is in flight from its release until it is consumed in a batch, leaves with an outcome, or is refused.
 * It is settled at most once; any other record counts as {@link #unknown()}. Refused samples are kept for {@value
 * #MAX_REFUSED_GROUPS} groups, since a redrive or a copy in a batch puts them in flight again. Fully settled groups
 * are forgotten.
 *
 * <p>The step consumes the samples of its batch; until then other records of these samples are copies and settle
 * nothing, so admission never releases into occupied capacity. Confined to admission's thread.
 */
final class ReleasedSamples {
    static final int MAX_REFUSED_GROUPS = 10_000;
    /** Most prompts waiting to be resampled; others are not resampled. */
    static final int MAX_RESAMPLES = 100;

    private final Map<String, AdmittedGroup> groups = new HashMap<>();
    private final Set<String> onlyRefused = new LinkedHashSet<>();
    private final Set<String> changed = new LinkedHashSet<>();
    private final Set<String> due = new LinkedHashSet<>();
    /** Groups refused by quarantine that were already released again. */
    private final Set<String> quarantined = new HashSet<>();

    private final WaitingBatches waiting;
    private final Deque<ResampleRequest> resample = new ArrayDeque<>();
    /** Prompts to resample, by waiting batch. */
    private final TreeMap<Long, List<ResampleRequest>> hard = new TreeMap<>();

    private long nextOrdinal;
    private long underWay;
    private long released;
    private long consumed;
    private long lost;
    private long unknown;
    private long releasedAgain;

    ReleasedSamples() {
        waiting = new WaitingBatches(-1, List.of());
    }

    ReleasedSamples(Collection<AdmittedGroup> kept, AdmissionCounts counts) {
        nextOrdinal = counts.getNextOrdinal();
        released = counts.getReleased();
        consumed = counts.getConsumed();
        lost = counts.getLost();
        unknown = counts.getUnknown();
        releasedAgain = counts.getReleasedAgain();
        waiting = new WaitingBatches(counts.getConsumedThrough(), counts.getStarved());
        counts.getResample().forEach(text -> ResampleRequest.parse(text).ifPresent(resample::add));
        for (AdmittedGroup group : kept) {
            groups.put(group.groupId(), group);
            underWay += group.underWay().cardinality();
            noteRefused(group);
        }
    }

    /** Counts to record; the caller adds the positions. */
    AdmissionCounts counts(Map<String, Long> positions) {
        return new AdmissionCounts(
                nextOrdinal,
                released,
                consumed,
                lost,
                unknown,
                releasedAgain,
                waiting.settledThrough(),
                waiting.starved(),
                resample.stream().map(ResampleRequest::text).toList(),
                positions);
    }

    void released(AdmittedGroup group, long ordinal) {
        nextOrdinal = Math.max(nextOrdinal, ordinal + 1);
        if (groups.putIfAbsent(group.groupId(), group) == null) {
            released += group.samples();
            underWay += group.underWay().cardinality();
            changed.add(group.groupId());
        }
    }

    /** Skips ordinals used in any epoch. */
    void usedOrdinalsBelow(long ordinal) {
        nextOrdinal = Math.max(nextOrdinal, ordinal);
    }

    Optional<ResampleRequest> takeResample() {
        return Optional.ofNullable(resample.poll());
    }

    /** Prompts to resample of batches consumed since the last call. */
    List<ResampleRequest> takeHard() {
        Map<Long, List<ResampleRequest>> consumed = hard.headMap(waiting.settledThrough(), true);
        List<ResampleRequest> taken =
                consumed.values().stream().flatMap(List::stream).toList();
        consumed.clear();
        return taken;
    }

    /** Adds a prompt to resample before new ones; false if there are too many. */
    boolean addResample(ResampleRequest prompt) {
        return resample.size() < MAX_RESAMPLES && resample.add(prompt);
    }

    /** Settles a sample with an outcome; false if it was not in flight. */
    boolean left(SampleName sample) {
        return settle(sample, false);
    }

    /** Settles a refused sample; false if it was not in flight. */
    boolean refused(SampleName sample) {
        return settle(sample, true);
    }

    /**
     * A record of a sample was refused because its generator is in quarantine. The sample stays in flight. Its group
     * is due for release at once the first time, later with the overdue ones. False if it was not in flight.
     */
    boolean quarantined(SampleName sample) {
        AdmittedGroup group = groups.get(sample.groupId());
        if (group == null || !group.underWay().get(sample.sampleIndex())) {
            unknown++;
            return false;
        }
        if (group.releases() == 1) {
            due.add(group.groupId());
        } else {
            quarantined.add(group.groupId());
        }
        return true;
    }

    /** Whether quarantine refused a record of a group since its last release. */
    boolean wasQuarantined(String groupId) {
        return quarantined.contains(groupId);
    }

    /** Marks a group whose samples in flight are to be released again. */
    void markDue(String groupId) {
        due.add(groupId);
    }

    /** The next group to release again that has samples in flight; empty if none. */
    Optional<AdmittedGroup> takeDue() {
        while (!due.isEmpty()) {
            String groupId = due.iterator().next();
            due.remove(groupId);
            AdmittedGroup group = groups.get(groupId);
            if (group != null && !group.underWay().isEmpty()) {
                return Optional.of(group);
            }
        }
        return Optional.empty();
    }

    void releasedAgain(AdmittedGroup group, long atMs) {
        releasedAgain += group.underWay().cardinality();
        group.releasedAgain(atMs);
        quarantined.remove(group.groupId());
        hasChanged(group);
    }

    private boolean settle(SampleName sample, boolean isRefused) {
        AdmittedGroup group = groups.get(sample.groupId());
        if (group == null || !group.underWay().get(sample.sampleIndex()) || waiting.has(sample)) {
            unknown++;
            return false;
        }
        group.underWay().clear(sample.sampleIndex());
        group.refused().set(sample.sampleIndex(), isRefused);
        underWay--;
        lost++;
        hasChanged(group);
        return true;
    }

    /** Settles all samples of a refused request; returns how many were in flight. */
    int requestRefused(String groupId) {
        AdmittedGroup group = groups.get(groupId);
        if (group == null || group.underWay().isEmpty()) {
            unknown++;
            return 0;
        }
        BitSet settled = new BitSet();
        group.underWay().stream()
                .filter(sample -> !waiting.has(new SampleName(groupId, sample)))
                .forEach(settled::set);
        int samples = settled.cardinality();
        group.refused().or(settled);
        group.underWay().andNot(settled);
        underWay -= samples;
        lost += samples;
        hasChanged(group);
        return samples;
    }

    /** Puts a redriven sample in flight again; false if its refusal had not settled it. */
    boolean redriven(SampleName sample) {
        AdmittedGroup group = groups.get(sample.groupId());
        if (group == null || !group.refused().get(sample.sampleIndex())) {
            unknown++;
            return false;
        }
        takeBack(group, sample.sampleIndex());
        return true;
    }

    void requestRedriven(String groupId) {
        AdmittedGroup group = groups.get(groupId);
        if (group == null || group.refused().isEmpty()) {
            unknown++;
            return;
        }
        for (int sample = group.refused().nextSetBit(0);
                sample >= 0;
                sample = group.refused().nextSetBit(sample)) {
            takeBack(group, sample);
        }
    }

    private void takeBack(AdmittedGroup group, int sample) {
        group.refused().clear(sample);
        group.underWay().set(sample);
        underWay++;
        lost--;
        hasChanged(group);
    }

    void batched(SampleEvent.Batched batch) {
        if (!waiting.takes(batch.batchId())) {
            unknown++; // a copy, or a batch far ahead that nobody made
            return;
        }
        Set<SampleName> samples = new HashSet<>();
        for (SampleName sample : batch.samples()) {
            AdmittedGroup group = groups.get(sample.groupId());
            if (group != null && group.refused().get(sample.sampleIndex())) {
                takeBack(group, sample.sampleIndex()); // what was refused was a copy of it
            }
            if (group != null && group.underWay().get(sample.sampleIndex())) {
                samples.add(sample);
            }
        }
        if (waiting.add(batch.batchId(), batch.offset(), samples)) {
            if (!batch.hard().isEmpty()) {
                hard.put(batch.batchId(), batch.hard());
            }
        } else {
            unknown++;
        }
        settleBatches();
    }

    /** A batch was consumed without making a version. */
    void starved(long batchId) {
        waiting.starved(batchId);
        settleBatches();
    }

    void consumedThrough(long batchId) {
        waiting.consumedThrough(batchId);
        settleBatches();
    }

    private void settleBatches() {
        waiting.settle(sample -> {
            AdmittedGroup group = groups.get(sample.groupId());
            if (group != null && group.underWay().get(sample.sampleIndex())) {
                group.underWay().clear(sample.sampleIndex());
                underWay--;
                consumed++;
                hasChanged(group);
            }
        });
    }

    private void hasChanged(AdmittedGroup group) {
        changed.add(group.groupId());
        noteRefused(group);
        if (group.underWay().isEmpty()) {
            quarantined.remove(group.groupId());
        }
        if (group.isOver()) {
            groups.remove(group.groupId());
        }
    }

    /** Evicts the oldest groups with refused samples only. */
    private void noteRefused(AdmittedGroup group) {
        if (!group.underWay().isEmpty() || group.refused().isEmpty()) {
            onlyRefused.remove(group.groupId());
        } else if (onlyRefused.add(group.groupId()) && onlyRefused.size() > MAX_REFUSED_GROUPS) {
            String oldest = onlyRefused.iterator().next();
            onlyRefused.remove(oldest);
            groups.remove(oldest);
            changed.add(oldest);
        }
    }

    /** Where the first batch lies that waits for its step: a restart must read on from there. */
    OptionalLong firstWaitingBatch() {
        return waiting.firstOffset();
    }

    /** Groups changed since the last call, by name; empty for a fully settled one. */
    Map<String, Optional<AdmittedGroup>> takeChanges() {
        Map<String, Optional<AdmittedGroup>> changes = new HashMap<>();
        changed.forEach(groupId -> changes.put(groupId, Optional.ofNullable(groups.get(groupId))));
        changed.clear();
        return changes;
    }

    boolean hasChanges() {
        return !changed.isEmpty();
    }

    void placed(String groupId, int partition, long offset) {
        AdmittedGroup group = groups.get(groupId);
        if (group != null) {
            group.lies(partition, offset);
            changed.add(groupId);
        }
    }

    Optional<AdmittedGroup> underWay(String groupId) {
        return Optional.ofNullable(groups.get(groupId))
                .filter(group -> !group.underWay().isEmpty());
    }

    /** Groups with samples in flight, unordered. */
    List<AdmittedGroup> groupsUnderWay() {
        List<AdmittedGroup> found = new ArrayList<>();
        for (AdmittedGroup group : groups.values()) {
            if (!group.underWay().isEmpty()) {
                found.add(group);
            }
        }
        return found;
    }

    long nextOrdinal() {
        return nextOrdinal;
    }

    /** Samples in flight: released and not settled. */
    long underWay() {
        return underWay;
    }

    /** Samples released in this epoch, each once. */
    long released() {
        return released;
    }

    /** Samples in batches that the learner has consumed. */
    long consumed() {
        return consumed;
    }

    /** Samples settled otherwise. */
    long lost() {
        return lost;
    }

    /** Records that settled nothing. */
    long unknown() {
        return unknown;
    }

    /** Counts a record of this run that settles no sample. */
    void countUnknown() {
        unknown++;
    }

    /** Repeated releases of samples under the same name. */
    long releasedAgain() {
        return releasedAgain;
    }

    /**
     * Batches that wait for their step, with their samples; consumed in the order of their ids.
     *
     * <p>The newest manifest and starved steps tell which are consumed. Confined to admission's thread.
     */
    static final class WaitingBatches {
        private static final int MAX_WAITING_BATCHES = 4096;

        private record WaitingBatch(long offset, Set<SampleName> samples) {}

        private final TreeMap<Long, WaitingBatch> waiting = new TreeMap<>();
        private final Set<SampleName> batched = new HashSet<>();

        private final TreeSet<Long> starved = new TreeSet<>();
        private long consumedThrough;
        private long settledThrough;

        /**
         * @param settledThrough last consumed batch; -1 if none
         * @param starved starved batches that were not read yet
         */
        WaitingBatches(long settledThrough, Collection<Long> starved) {
            this.settledThrough = settledThrough;
            this.consumedThrough = settledThrough;
            this.starved.addAll(starved);
        }

        boolean has(SampleName sample) {
            return batched.contains(sample);
        }

        /** Whether a batch is neither consumed nor implausibly far ahead. */
        boolean takes(long batchId) {
            return batchId > settledThrough && waiting.size() < MAX_WAITING_BATCHES;
        }

        /**
         * Adds a waiting batch.
         *
         * @return false if a batch with its id waits already: one is a copy or foreign, and the samples of both are consumed with it
         */
        boolean add(long batchId, long offset, Set<SampleName> samples) {
            batched.addAll(samples);
            WaitingBatch known = waiting.get(batchId);
            if (known != null) {
                known.samples().addAll(samples);
                return false;
            }
            waiting.put(batchId, new WaitingBatch(offset, new HashSet<>(samples)));
            return true;
        }

        /** A batch was consumed without making a version. */
        void starved(long batchId) {
            if (batchId > settledThrough && starved.size() < MAX_WAITING_BATCHES) {
                starved.add(batchId);
            }
        }

        void consumedThrough(long batchId) {
            consumedThrough = Math.max(consumedThrough, batchId);
        }

        /** @param consumed receives each sample of the consumed batches */
        void settle(Consumer<SampleName> consumed) {
            while (!waiting.isEmpty()
                    && (waiting.firstKey() <= consumedThrough || starved.contains(waiting.firstKey()))) {
                Map.Entry<Long, WaitingBatch> batch = waiting.pollFirstEntry();
                settledThrough = batch.getKey();
                starved.headSet(settledThrough, true).clear();
                batched.removeAll(batch.getValue().samples());
                batch.getValue().samples().forEach(consumed);
            }
        }

        long settledThrough() {
            return settledThrough;
        }

        /** Starved batches that were not read yet, lowest first. */
        List<Long> starved() {
            return List.copyOf(starved);
        }

        /** Where the first batch lies that waits for its step: a restart must read on from there. */
        OptionalLong firstOffset() {
            return waiting.values().stream().mapToLong(WaitingBatch::offset).min();
        }
    }
}
