package dev.millrace.topology.batch;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.topology.batch.BatchConfig.Order;
import dev.millrace.topology.batch.BatchMaker.BatchVersion;
import dev.millrace.topology.batch.BatchMaker.Freshness;
import dev.millrace.topology.batch.MemberVectors.Vectors;
import dev.millrace.topology.batch.VersionHistory.Forgotten;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.topology.task.Wait;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * Cuts batches from the queue while it holds enough and the learner can take more.
 *
 * <p>Drops groups whose tokens are all stale. Groups with nothing to train on go along with the next ones. If a stage
 * fails on a batch, its groups leave, and the next batch takes its number. Confined to one task.
 */
final class BatchCutter {
    private final BatchConfig config;
    private final long maxVersions;
    private final AssemblyStore store;
    private final VersionHistory versions;
    private final BatchQueue queue;
    private final BatchMaker maker;
    private final MemberVectors vectors;
    private final SeenOrdinals ordinals;
    private long nextBatchId;
    /** Rollouts that have left as stale since a batch was cut last, and behind which version the last of them was. */
    private long staleSinceBatch;

    private long staleBehind;
    /** Whether it is known which batch is the first: in a later epoch the first version says so. */
    private boolean isBegun;

    /**
     * @param maxVersions limit on staleness, for a sentence
     * @param isBegun whether batches count from where the store says; otherwise nothing is cut before {@link #begin}
     */
    BatchCutter(
            BatchConfig config,
            long maxVersions,
            AssemblyStore store,
            VersionHistory versions,
            BatchQueue queue,
            BatchMaker maker,
            MemberVectors vectors,
            boolean isBegun) {
        this.isBegun = isBegun;
        this.config = config;
        this.maxVersions = maxVersions;
        this.store = store;
        this.versions = versions;
        this.queue = queue;
        this.maker = maker;
        this.vectors = vectors;
        this.nextBatchId = store.nextBatchId();
        this.ordinals = new SeenOrdinals(isBegun && nextBatchId == 0);
    }

    /** Batches count on from this one, which made the version that the epoch begins with; called again it does nothing. */
    void begin(long lastBatchId) {
        if (!isBegun) {
            isBegun = true;
            nextBatchId = lastBatchId + 1;
            store.putNextBatchId(nextBatchId);
        }
    }

    /** Below which all batches were made: nobody can have consumed a later one. All numbers are, until it is known which is the first. */
    long batches() {
        return isBegun ? nextBatchId : Long.MAX_VALUE;
    }

    /**
     * Cuts what can be cut.
     *
     * @param open members of groups that are not ready, for comparison
     * @param out takes batches
     * @param leave takes groups that leave, with a sentence
     * @param batched takes groups that are in a batch now
     * @param failed takes a sentence about a batch that is given up
     */
    void cut(
            Collection<Group> open,
            Consumer<LearnerBatch> out,
            GroupExit leave,
            Consumer<Group> batched,
            Consumer<String> failed) {
        int atLeast = 1;
        while (isBegun && (config.maxOutstanding() == 0 || outstanding() < config.maxOutstanding())) {
            long lastChance = versions.expectedAtStep(nextBatchId) - maxVersions;
            List<Group> groups = queue.next(atLeast, lastChance);
            if (groups.isEmpty() || wouldOvertake(groups, open, lastChance)) {
                return;
            }
            long roomMs = config.maxOutstanding() == 0
                    ? Long.MIN_VALUE
                    : versions.consumedMsOf(nextBatchId - config.maxOutstanding());
            List<Member> members = membersOf(groups);
            long currentVersion = versions.current(members, roomMs);
            long completeMs =
                    members.stream().mapToLong(Member::timestampMs).max().orElseThrow();
            long atStep = versions.expectedAtStep(nextBatchId, currentVersion, Math.max(completeMs, roomMs));
            Map<Group, Freshness> freshness = new LinkedHashMap<>();
            groups.forEach(group -> freshness.put(group, maker.freshness(group, atStep)));
            List<Group> stale = groups.stream()
                    .filter(group -> freshness.get(group) == Freshness.ALL_STALE)
                    .toList();
            if (!stale.isEmpty()) {
                queue.remove(stale);
                staleSinceBatch += membersOf(stale).size();
                staleBehind = atStep;
                stale.forEach(group -> leave.leave(
                        group,
                        OutcomeReason.STALE,
                        "all its tokens are more than " + maxVersions + " versions behind version " + atStep
                                + ", at which the step on batch " + nextBatchId + " is expected to start"));
            } else if (freshness.containsValue(Freshness.SOME)) {
                Map<String, Vectors> found = vectors.of(members);
                List<Group> gone = groups.stream()
                        .filter(group ->
                                !group.members().stream().allMatch(member -> found.containsKey(member.rolloutId())))
                        .toList();
                if (!gone.isEmpty()) {
                    queue.remove(gone);
                    gone.forEach(
                            group -> leave.leave(
                                    group,
                                    OutcomeReason.GROUP_SHORT,
                                    "a trajectory of its members is no longer kept"
                                            + " by the log; raise the topic's retention above the time that batches wait for the learner"));
                    continue;
                }
                queue.remove(groups);
                long assembledAtMs = Math.max(completeMs, roomMs);
                LearnerBatch batch;
                try {
                    batch = maker.make(
                            nextBatchId,
                            groups,
                            found,
                            new BatchVersion(currentVersion, atStep),
                            assembledAtMs,
                            lengthReport(groups, open));
                } catch (
                        IllegalArgumentException
                                e) { // follows from the records alone, so a restart would meet it again
                    String why = "batch " + nextBatchId + " is given up: " + e.getMessage();
                    failed.accept(why);
                    groups.forEach(group -> leave.leave(group, OutcomeReason.STAGE_FAILED, why));
                    atLeast = 1;
                    continue;
                }
                out.accept(batch);
                nextBatchId++;
                store.putNextBatchId(nextBatchId);
                groups.forEach(batched);
                staleSinceBatch = 0;
                Forgotten forgotten = versions.forgetBefore(assembledAtMs);
                forgotten.versions().forEach(store.versions::delete);
                forgotten.starvedBatches().forEach(store.starved::delete);
                atLeast = 1;
            } else {
                atLeast = groups.size() + 1;
            }
        }
    }

    /** Records that a sample of a request has arrived. */
    void seen(long ordinal) {
        ordinals.see(ordinal);
    }

    /**
     * True if cutting now would strand an older group that is on its way and that no later batch could accept. A
     * request without any arrival yet is assumed to be as old as the oldest version in these groups. The cutter waits
     * for it while the learner has other batches, which costs nothing. After that the staleness limit may drop it.
     */
    private boolean wouldOvertake(List<Group> groups, Collection<Group> open, long lastChance) {
        if (config.order() != Order.COMPLETION) {
            return false;
        }
        long newest = groups.stream().mapToLong(Group::ordinal).max().orElseThrow();
        boolean isHole = ordinals.hasHoleBefore(newest)
                && groups.stream().anyMatch(group -> group.oldestVersion() <= lastChance);
        if (outstanding() <= 0) {
            if (isHole) {
                ordinals.giveUpBefore(newest);
            }
            return false;
        }
        return isHole
                || open.stream().anyMatch(group -> group.ordinal() < newest && group.oldestVersion() <= lastChance);
    }

    private long outstanding() {
        return nextBatchId - 1 - consumed();
    }

    /** Bounded by the last batch cut: a batch that was not cut cannot be consumed. */
    private long consumed() {
        return Math.min(versions.consumed(), nextBatchId - 1);
    }

    /** The number of the batch that is cut next. */
    long nextBatchId() {
        return nextBatchId;
    }

    /**
     * Returns the wait for the learner, if batches are outstanding, and the wait for a batch, if a batch's worth of
     * rollouts has left as stale.
     */
    List<Wait> waits(int partition) {
        List<Wait> waits = new ArrayList<>();
        long outstanding = outstanding();
        if (outstanding != 0) {
            waits.add(new Wait(
                    "batches",
                    partition,
                    consumed(),
                    outstanding + " batches wait for the learner, which has not consumed batch " + (consumed() + 1)
                            + " yet"));
        }
        if (staleSinceBatch >= config.sequences()) {
            waits.add(new Wait(
                    "stale",
                    partition,
                    nextBatchId,
                    "batch " + nextBatchId + " is not cut: " + staleSinceBatch
                            + " rollouts have left as stale since the one before it, the last more than " + maxVersions
                            + " versions behind version " + staleBehind));
        }
        return waits;
    }

    /** How a group leaves. */
    interface GroupExit {
        void leave(Group group, OutcomeReason reason, String detail);
    }

    /**
     * Reports whether the order of groups favours short answers: compares the batched groups with those left behind.
     * Submission order cannot favour them, and there the groups left behind depend on timing, which would make two runs
     * over the same topics differ.
     */
    private StageReport lengthReport(List<Group> batched, Collection<Group> open) {
        List<Member> taken = membersOf(batched);
        double mean = (double) tokensOf(taken) / taken.size();
        Map<String, Double> values = new TreeMap<>();
        values.put("mean_tokens", mean);
        if (config.order() != Order.SUBMISSION) {
            List<Member> waiting = new ArrayList<>(membersOf(queue.all()));
            waiting.addAll(membersOf(open));
            double meanOfAll = (double) (tokensOf(taken) + tokensOf(waiting)) / (taken.size() + waiting.size());
            values.put("waiting_sequences", (double) waiting.size());
            values.put("length_bias", mean / meanOfAll);
        }
        long trainable = taken.stream().mapToLong(Member::trainableTokens).sum();
        return new StageReport("order", trainable, 0L, (long) taken.size(), 0L, values);
    }

    private static long tokensOf(List<Member> members) {
        return members.stream().mapToLong(Member::tokens).sum();
    }

    private static List<Member> membersOf(Collection<Group> groups) {
        return groups.stream().flatMap(group -> group.members().stream()).toList();
    }
}
