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
    /** Prompts that wait to be released once more; the rest is not. */
    static final int MAX_RESAMPLES = 100;

    private final Map<String, AdmittedGroup> groups = new HashMap<>();
    private final Set<String> onlyRefused = new LinkedHashSet<>();
    private final Set<String> changed = new LinkedHashSet<>();
    private final Set<String> due = new LinkedHashSet<>();
    /** Those that were released again already. */
    private final Set<String> quarantined = new HashSet<>();

    private final WaitingBatches waiting;
    private final Deque<ResampleRequest> resample = new ArrayDeque<>();
    /** Hard prompts of batches that wait. */
    private final TreeMap<Long, List<ResampleRequest>> hard = new TreeMap<>();

    private long nextOrdinal;
    private long underWay;
    private long released;
    private long consumed;
    private long lost;
    private long unknown;
    private long releasedAgain;

    /** Nothing released yet. */
    ReleasedSamples() {
        waiting = new WaitingBatches(-1, List.of());
    }

    /** What an earlier admission kept. */
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

    /** The counts as they are kept; positions are the log's to fill in. */
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

    /** A request is out: every sample of it is under way. */
    void released(AdmittedGroup group, long ordinal) {
        nextOrdinal = Math.max(nextOrdinal, ordinal + 1);
        if (groups.putIfAbsent(group.groupId(), group) == null) {
            released += group.samples();
            underWay += group.underWay().cardinality();
            changed.add(group.groupId());
        }
    }

    /** Ordinals below this one were used, in any epoch. */
    void usedOrdinalsBelow(long ordinal) {
        nextOrdinal = Math.max(nextOrdinal, ordinal);
    }

    /** A request that waited to be released once more is. */
    Optional<ResampleRequest> takeResample() {
        return Optional.ofNullable(resample.poll());
    }

    /** Hard prompts of batches that were consumed since the last call. */
    List<ResampleRequest> takeHard() {
        Map<Long, List<ResampleRequest>> consumed = hard.headMap(waiting.settledThrough(), true);
        List<ResampleRequest> taken =
                consumed.values().stream().flatMap(List::stream).toList();
        consumed.clear();
        return taken;
    }

    /** A prompt is to be released once more before new ones; false if there is no room. */
    boolean addResample(ResampleRequest prompt) {
        return resample.size() < MAX_RESAMPLES && resample.add(prompt);
    }

    /** A sample left without reaching a batch; false if it was not under way. */
    boolean left(SampleName sample) {
        return settle(sample, false);
    }

    /** A record of a sample was refused; false if it was not under way. */
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

    /** Whether a record of a group was refused because its generator is in quarantine, since it was last released. */
    boolean wasQuarantined(String groupId) {
        return quarantined.contains(groupId);
    }

    /** What is under way of a group is to be released again. */
    void becomesDue(String groupId) {
        due.add(groupId);
    }

    /** The next group to release again that still has samples under way; empty if none is due. */
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

    /** A group is released once more under its name. */
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

    /** A request was refused; how many samples were under way and now are not. */
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

    /** A refused record of a sample was put back; false if the sample was not lost by that. */
    boolean redriven(SampleName sample) {
        AdmittedGroup group = groups.get(sample.groupId());
        if (group == null || !group.refused().get(sample.sampleIndex())) {
            unknown++;
            return false;
        }
        takeBack(group, sample.sampleIndex());
        return true;
    }

    /** A refused request was put back. */
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

    /** Samples reached a batch, which is or will be consumed. */
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

    /** Batches up to this one are consumed, as the newest manifest says. */
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

    /** Those that only a redrive could bring back are forgotten in the end, the oldest first. */
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

    /** Groups that have changed since the last call, by name; empty where nothing is to be kept of one any more. */
    Map<String, Optional<AdmittedGroup>> takeChanges() {
        Map<String, Optional<AdmittedGroup>> changes = new HashMap<>();
        changed.forEach(groupId -> changes.put(groupId, Optional.ofNullable(groups.get(groupId))));
        changed.clear();
        return changes;
    }

    boolean hasChanges() {
        return !changed.isEmpty();
    }

    /** A group's place on the log is known, which is worth keeping. */
    void placed(String groupId, int partition, long offset) {
        AdmittedGroup group = groups.get(groupId);
        if (group != null) {
            group.lies(partition, offset);
            changed.add(groupId);
        }
    }

    /** A group with samples under way; empty if no group has the name. */
    Optional<AdmittedGroup> underWay(String groupId) {
        return Optional.ofNullable(groups.get(groupId))
                .filter(group -> !group.underWay().isEmpty());
    }

    /** The groups with samples under way, in no order. */
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

    /** Samples that were released and not settled. */
    long underWay() {
        return underWay;
    }

    /** Samples asked for in this epoch, each once. */
    long released() {
        return released;
    }

    /** Samples in batches that the learner has consumed. */
    long consumed() {
        return consumed;
    }

    /** Samples that left otherwise. */
    long lost() {
        return lost;
    }

    /** Records that settled nothing. */
    long unknown() {
        return unknown;
    }

    /** A record of this run that is about no sample that could be under way. */
    void countUnknown() {
        unknown++;
    }

    /** Samples that were released again under the same name. */
    long releasedAgain() {
        return releasedAgain;
    }

    /**
     * Batches that wait for their step, each with its samples, until they are consumed in the order of their ids.
     *
     * <p>Which are is told by the newest version's manifest, and by steps that were starved. Confined to admission's thread.
     */
    static final class WaitingBatches {
        private static final int MAX_WAITING_BATCHES = 4096;

        private record WaitingBatch(long offset, Set<SampleName> samples) {}

        private final TreeMap<Long, WaitingBatch> waiting = new TreeMap<>();
        /** Samples of batches that wait. */
        private final Set<SampleName> batched = new HashSet<>();

        private final TreeSet<Long> starved = new TreeSet<>();
        private long consumedThrough;
        private long settledThrough;

        /**
         * @param settledThrough the last batch that was consumed; -1 if none was
         * @param starved batches that made no version and whose content is not known yet
         */
        WaitingBatches(long settledThrough, Collection<Long> starved) {
            this.settledThrough = settledThrough;
            this.consumedThrough = settledThrough;
            this.starved.addAll(starved);
        }

        /** Whether a sample is in a batch that waits. */
        boolean has(SampleName sample) {
            return batched.contains(sample);
        }

        /** Whether a batch is neither consumed nor far ahead, where nobody makes one. */
        boolean takes(long batchId) {
            return batchId > settledThrough && waiting.size() < MAX_WAITING_BATCHES;
        }

        /**
         * A batch that waits from now on.
         *
         * @return false if one of its id waits already: one of the two is a copy or a forgery, and the samples of both are consumed with it
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

        /** Batches up to this one are consumed, as the newest manifest says. */
        void consumedThrough(long batchId) {
            consumedThrough = Math.max(consumedThrough, batchId);
        }

        /** @param consumed takes each sample of the batches that wait no longer */
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

        /** The last batch whose samples are settled. */
        long settledThrough() {
            return settledThrough;
        }

        /** Batches that made no version and whose content is not known yet; lowest first. */
        List<Long> starved() {
            return List.copyOf(starved);
        }

        /** Where the first batch lies that waits for its step: a restart must read on from there. */
        OptionalLong firstOffset() {
            return waiting.values().stream().mapToLong(WaitingBatch::offset).min();
        }
    }
}
