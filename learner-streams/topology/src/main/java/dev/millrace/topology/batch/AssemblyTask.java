package dev.millrace.topology.batch;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.RunContext;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.AssemblyStore.MemberPlace;
import dev.millrace.topology.batch.BatchConfig.Order;
import dev.millrace.topology.batch.BatchMaker.BatchVersion;
import dev.millrace.topology.batch.BatchMaker.Freshness;
import dev.millrace.topology.batch.BatchQueue.Turn;
import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;
import dev.millrace.topology.batch.MemberVectors.Vectors;
import dev.millrace.topology.batch.VersionHistory.Forgotten;
import dev.millrace.topology.batch.VersionHistory.Publication;
import dev.millrace.topology.batch.VersionHistory.Starved;
import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.ingress.RecordReader;
import dev.millrace.topology.ingress.StarvedArrival;
import dev.millrace.topology.ingress.TrajectoryArrival;
import dev.millrace.topology.ingress.VersionArrival;
import dev.millrace.topology.ingress.VersionDeletion;
import dev.millrace.topology.state.ActivityClock;
import dev.millrace.topology.task.DecisionTask;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.topology.task.TaskOutput;
import dev.millrace.topology.task.TaskRecords;
import dev.millrace.topology.task.Wait;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Assembles trajectories into groups and groups into batches.
 *
 * <p>Each trajectory leaves exactly once: in a batch, as an outcome, or as a dead letter. {@link GroupDecision}, {@link
 * VersionHistory}, {@link BatchQueue} and {@link BatchCutter} decide; this class applies their decisions.
 */
public final class AssemblyTask implements DecisionTask<AssemblyArrival> {
    /** Name of the store. */
    public static final String STORE = AssemblyStore.NAME;

    private final GroupsConfig config;
    private final RunContext context;
    private final AssemblyStore store;
    private final TaskRecords records;
    private final Serializer<LearnerBatch> batches;
    private final ActivityClock clock;
    private final MemberVectors vectors;
    private final VersionHistory versions;
    private final ClosedGroups closed;
    /** By time of their first member. */
    private final Map<String, Group> open = new LinkedHashMap<>();

    private final BatchQueue queue;
    private final BatchCutter cutter;
    private final Optional<AssemblyMemory> memory;
    private final int partition;
    /** Number of groups decided; the progress of a wait for members. */
    private long decided;

    private long lastOffset;
    private Map<String, MemberPlace> lost;
    /** Largest record timestamp so far. */
    private long streamTimeMs;

    /** @param trajectories decodes trajectories that are fetched again */
    public AssemblyTask(
            TopologyConfig config,
            Algorithm algorithm,
            RunContext context,
            RecordReader<AssemblyArrival> trajectories,
            int partition,
            KeyValueStore<Bytes, byte[]> held,
            Consumer<TaskOutput> sink) {
        this.config = config.groups();
        this.context = context;
        this.partition = partition;
        store = new AssemblyStore(held);
        records = new TaskRecords(context, "groups", sink);
        batches = AvroSerde.of(LearnerBatch.class, context.registry()).serializer();
        vectors = new MemberVectors(
                new TopicPartition(context.topics().trajectories(), partition),
                context.fetchers().get(),
                trajectories,
                algorithm.inputs(),
                config.runtime().memberCacheBytes());
        boolean isFirstEpoch = context.lineage().parent().isEmpty();
        versions = new VersionHistory(
                context.lineage().parent().map(Ancestor::version).orElse(0L));
        versions.restore(store.versions.all()).forEach(store.versions::delete);
        store.ahead.all().forEach(versions::add);
        store.starved.all().forEach(versions::addStarved);
        closed = new ClosedGroups(store, config.groups().closedRetentionMs());
        queue = new BatchQueue(config.batch(), store, config.groups().deadlineMs(), isFirstEpoch);
        memory = AssemblyMemory.of(algorithm, store, context);
        cutter = new BatchCutter(
                config.batch(),
                algorithm.staleness().maxVersions(),
                new BatchMaker(context.run(), algorithm, config.batch().recordWeights(), memory),
                isFirstEpoch || !versions.isEmpty());
        lost = store.members.all();
        Map<Member, Long> members = restoreMembers();
        long newestSinceMs =
                members.values().stream().mapToLong(Long::longValue).max().orElse(0);
        clock = new ActivityClock(config.groups().maxGapMs(), Math.max(newestSinceMs, closed.newestMs()));
        restore(members);
    }

    /** Members without a batch whose trajectories the log still holds, in offset order, with their arrival times. */
    private Map<Member, Long> restoreMembers() {
        Map<Member, Long> members = new LinkedHashMap<>();
        long[] offsets =
                lost.values().stream().mapToLong(MemberPlace::offset).sorted().toArray();
        vectors.read(offsets, (arrival, completeMs) -> {
            Member member = Member.of(arrival.trajectory(), arrival.partition(), arrival.offset(), completeMs);
            vectors.keep(member, arrival.trajectory());
            members.put(
                    member,
                    Objects.requireNonNull(lost.remove(member.sample().rolloutId()), member.sample()::rolloutId)
                            .sinceMs());
        });
        return members;
    }

    private void restore(Map<Member, Long> members) {
        members.forEach((member, sinceMs) -> {
            lastOffset = Math.max(lastOffset, member.place().offset());
            cutter.seen(member.sample().ordinal());
            Group group = open.get(member.sample().groupId());
            if (group == null) {
                open.put(member.sample().groupId(), new Group(member, sinceMs));
            } else {
                group.add(member);
            }
        });
        Map<String, Long> released = store.released.all();
        for (Group group : List.copyOf(open.values())) {
            Long afterOffset = released.get(group.groupId());
            if (afterOffset != null) {
                open.remove(group.groupId());
                queue.add(group, new Turn(afterOffset, true));
            } else if (group.isComplete() && group.members().stream().noneMatch(versions::lacksVersionOf)) {
                open.remove(group.groupId());
                queue.add(group, new Turn(group.lastOffset(), false));
            }
        }
    }

    @Override
    public void take(AssemblyArrival arrival, long timestampMs) {
        streamTimeMs = Math.max(streamTimeMs, timestampMs);
        clock.record(timestampMs);
        settle(streamTimeMs);
        if (arrival instanceof VersionArrival version) {
            take(version);
            decideComplete(streamTimeMs);
        } else if (arrival instanceof VersionDeletion deletion) {
            versions.deleted(deletion.version());
            store.ahead.delete(deletion.version());
        } else if (arrival instanceof StarvedArrival batch) {
            if (batch.batchId() < cutter.batches()) {
                Starved starved = new Starved(batch.version(), batch.timestampMs());
                versions.addStarved(batch.batchId(), starved);
                store.starved.put(batch.batchId(), starved);
            }
        } else {
            take((TrajectoryArrival) arrival, timestampMs);
        }
        cutBatches(streamTimeMs);
    }

    @Override
    public boolean idle(long countedMs, long wallClockMs) {
        clock.idle(countedMs);
        boolean decided = settle(wallClockMs);
        return cutBatches(wallClockMs) || decided;
    }

    @Override
    public List<Wait> waits() {
        List<Wait> waits = new ArrayList<>();
        if (!open.isEmpty()) {
            Group oldest = open.values().iterator().next();
            waits.add(new Wait(
                    "assemble",
                    partition,
                    decided,
                    open.size() + " groups are not ready, the oldest, "
                            + oldest.groupId() + ", since " + (clock.nowMs() - oldest.sinceMs()) / 1000 + " s with "
                            + oldest.members().size()
                            + " of " + oldest.size() + " members"
                            + (oldest.isComplete() ? ", and waits for a version to be published" : "")));
        }
        waits.addAll(queue.waits(partition, cutter.nextBatchId()));
        waits.addAll(cutter.waits(partition));
        return waits;
    }

    @Override
    public long nowMs() {
        return clock.nowMs();
    }

    @Override
    public void close() {
        vectors.close();
    }

    private void take(VersionArrival arrival) {
        Publication publication = new Publication(arrival.batchId(), arrival.timestampMs());
        versions.add(arrival.version(), publication).forEach((version, taken) -> {
            store.ahead.delete(version);
            store.versions.put(version, taken);
            cutter.begin(taken.batchId());
        });
        if (versions.isAhead(arrival.version())) {
            store.ahead.put(arrival.version(), publication);
            versions.giveUpFarthest().ifPresent(store.ahead::delete);
        }
    }

    private void take(TrajectoryArrival arrival, long timestampMs) {
        lastOffset = arrival.offset();
        Member member = Member.of(arrival.trajectory(), arrival.partition(), arrival.offset(), timestampMs);
        if (closed.contains(member.sample().groupId())) {
            leave(
                    OutcomeReason.GROUP_SHORT,
                    member,
                    streamTimeMs,
                    "it came after its group was closed incomplete, " + config.deadlineMs()
                            + " ms of activity after the group's first");
            return;
        }
        cutter.seen(member.sample().ordinal());
        Group group = open.get(member.sample().groupId());
        if (group != null
                && (group.has(member.sample().index())
                        || group.size() != member.sample().groupSize())) {
            records.refuse(
                    arrival.raw(),
                    new LogCoordinates(context.topics().trajectories(), arrival.partition(), arrival.offset()),
                    arrival.trajectory().getRolloutId(),
                    Refusal.of(
                            RefusalReason.SIBLINGS,
                            "sample_index",
                            "the group has a sample " + member.sample().index() + " already, or another size than "
                                    + member.sample().groupSize() + ": its size is " + group.size()));
            return;
        }
        if (group == null) {
            group = new Group(member, clock.nowMs());
            open.put(member.sample().groupId(), group);
        } else {
            group.add(member);
        }
        vectors.keep(member, arrival.trajectory());
        store.members.put(
                member.sample().rolloutId(),
                new MemberPlace(
                        member.place().offset(),
                        member.place().rollout().getPartition(),
                        member.place().rollout().getOffset(),
                        clock.nowMs()));
        decide(group, streamTimeMs);
    }

    /** Applies deadlines and retention; true if a group was overdue. */
    private boolean settle(long decidedAtMs) {
        lost.forEach((rolloutId, place) -> {
            store.members.delete(rolloutId);
            records.leave(
                    OutcomeReason.GROUP_SHORT,
                    rolloutId.substring(0, rolloutId.lastIndexOf('/')),
                    rolloutId,
                    TaskRecords.UNKNOWN_VERSION,
                    new LogCoordinates(context.topics().rollouts(), place.rolloutPartition(), place.rolloutOffset()),
                    decidedAtMs,
                    "retention deleted its trajectory; raise the topic's retention above deadline_ms");
        });
        lost = Map.of();
        closed.forgetOlder(clock.nowMs());
        List<Group> overdue = new ArrayList<>();
        for (Group group : open.values()) {
            if (clock.nowMs() - group.sinceMs() < config.deadlineMs()) {
                break; // later groups are younger
            }
            overdue.add(group);
        }
        overdue.forEach(group -> decide(group, decidedAtMs));
        return !overdue.isEmpty();
    }

    /** Decides complete groups again after a new version. */
    private void decideComplete(long decidedAtMs) {
        for (Group group : List.copyOf(open.values())) {
            if (group.isComplete()) {
                decide(group, decidedAtMs);
            }
        }
    }

    private void decide(Group group, long decidedAtMs) {
        GroupDecision decision = GroupDecision.of(group, clock.nowMs(), config, versions);
        if (decision == GroupDecision.WAIT) {
            return;
        }
        if (decision == GroupDecision.DROP_UNKNOWN_VERSIONS) {
            dropUnknownVersions(group, decidedAtMs);
            decide(group, decidedAtMs);
            return;
        }
        open.remove(group.groupId());
        decided++;
        if (!group.isComplete()) {
            closed.add(group.groupId(), clock.nowMs());
        }
        switch (decision) {
            case DROP_SHORT ->
                leave(
                        group,
                        OutcomeReason.GROUP_SHORT,
                        decidedAtMs,
                        "the group had " + group.members().size()
                                + " of " + group.size() + " members after "
                                + config.deadlineMs() + " ms of activity, fewer than min_size "
                                + config.minSize());
            case DROP_ZERO_VARIANCE -> leaveWithoutVariance(group, decidedAtMs);
            default -> {
                if (group.isComplete()) {
                    queue.add(group, new Turn(group.lastOffset(), false));
                } else {
                    queue.add(group, new Turn(lastOffset, true));
                    store.released.put(group.groupId(), lastOffset);
                }
            }
        }
    }

    private void leaveWithoutVariance(Group group, long decidedAtMs) {
        String detail = "every reward of the group is " + group.members().get(0).reward();
        if (config.zeroVariance() == ZeroVariance.RESAMPLE) {
            Member first = group.members().get(0);
            leave(OutcomeReason.RESAMPLE, first, decidedAtMs, detail + "; its prompt is to be resampled");
            forget(first);
            group.remove(first);
        }
        leave(group, OutcomeReason.ZERO_VARIANCE, decidedAtMs, detail);
    }

    private void dropUnknownVersions(Group group, long decidedAtMs) {
        for (Member member : group.members()) {
            if (versions.lacksVersionOf(member)) {
                leave(
                        OutcomeReason.VERSION_UNAVAILABLE,
                        member,
                        decidedAtMs,
                        "it names version "
                                + Math.max(
                                        member.newestVersion(),
                                        member.versions().proximal())
                                + ", which was not published within "
                                + config.deadlineMs() + " ms of activity");
                forget(member);
                group.remove(member);
            }
        }
    }

    /** True if the group that the queue waits for has changed. */
    private boolean cutBatches(long decidedAtMs) {
        boolean advanced = queue.advance(clock.nowMs());
        cutter.cut(decidedAtMs);
        return advanced;
    }

    /** @throws IllegalStateException if the batch is too large for the log */
    private void take(LearnerBatch batch) {
        String topic = context.topics().batches();
        byte[] bytes = batches.serialize(topic, batch);
        if (bytes.length > context.maxValueBytes()) {
            throw new IllegalStateException("batch " + batch.getBatchId() + " takes " + bytes.length
                    + " bytes, a record may take " + context.maxValueBytes()
                    + "; lower the batch's sequences, or raise max_record_bytes and the topic's max.message.bytes");
        }
        context.meters().batch();
        records.write(topic, batch.getPolicyId(), bytes, new RecordHeaders());
    }

    private void leave(OutcomeReason reason, Member member, long decidedAtMs, String detail) {
        records.leave(
                reason,
                member.sample().groupId(),
                member.sample().rolloutId(),
                member.newestVersion(),
                member.place().rollout(),
                decidedAtMs,
                detail);
    }

    private void leave(Group group, OutcomeReason reason, long decidedAtMs, String detail) {
        group.members().forEach(member -> leave(reason, member, decidedAtMs, detail));
        queue.leave(group);
        forget(group);
    }

    private void forget(Group group) {
        group.members().forEach(this::forget);
        if (!group.isComplete()) {
            store.released.delete(group.groupId());
        }
    }

    private void forget(Member member) {
        store.members.delete(member.sample().rolloutId());
        vectors.drop(member);
    }

    /** Groups that were closed short, to recognize late members. Confined to one task. */
    static final class ClosedGroups {
        private final AssemblyStore store;
        private final long retentionMs;
        /** In closing order. */
        private final Map<String, Long> closedMs = new LinkedHashMap<>();

        ClosedGroups(AssemblyStore store, long retentionMs) {
            this.store = store;
            this.retentionMs = retentionMs;
            store.closed.all().entrySet().stream()
                    .sorted(Map.Entry.<String, Long>comparingByValue().thenComparing(Map.Entry.comparingByKey()))
                    .forEach(entry -> closedMs.put(entry.getKey(), entry.getValue()));
        }

        boolean contains(String groupId) {
            return closedMs.containsKey(groupId);
        }

        void add(String groupId, long nowMs) {
            closedMs.put(groupId, nowMs);
            store.closed.put(groupId, nowMs);
        }

        /** Newest closing time; 0 if empty. */
        long newestMs() {
            return closedMs.values().stream().mapToLong(Long::longValue).max().orElse(0);
        }

        void forgetOlder(long nowMs) {
            List<String> old = new ArrayList<>();
            for (Map.Entry<String, Long> entry : closedMs.entrySet()) {
                if (nowMs - entry.getValue() < retentionMs) {
                    break;
                }
                old.add(entry.getKey());
            }
            for (String groupId : old) {
                closedMs.remove(groupId);
                store.closed.delete(groupId);
            }
        }
    }

    /**
     * Decides about a group. A pure function of group, time, configuration and versions.
     */
    enum GroupDecision {
        /** It waits for more members. */
        WAIT,
        /** It can be batched. */
        READY,
        /** Drop members that name unpublished versions, then decide again about the rest. */
        DROP_UNKNOWN_VERSIONS,
        /** It has fewer than {@code min_size} members after the deadline. */
        DROP_SHORT,
        /** Its rewards are equal and {@code zero_variance} is not {@code keep}. */
        DROP_ZERO_VARIANCE;

        /**
         * @param nowMs current time of the activity clock
         * @param versions all versions published so far
         */
        static GroupDecision of(Group group, long nowMs, GroupsConfig config, VersionHistory versions) {
            boolean unknown = group.members().stream().anyMatch(versions::lacksVersionOf);
            if (!group.isComplete() || unknown) {
                if (nowMs - group.sinceMs() < config.deadlineMs()) {
                    return WAIT; // for siblings, or for a version that is on its way
                }
                if (unknown) {
                    return DROP_UNKNOWN_VERSIONS;
                }
                if (group.members().size() < config.minSize()) {
                    return DROP_SHORT;
                }
            }
            return config.zeroVariance() != ZeroVariance.KEEP && group.hasZeroVariance() ? DROP_ZERO_VARIANCE : READY;
        }
    }

    /**
     * Cuts batches from the queue while it holds enough and the learner can take more.
     *
     * <p>Drops groups whose tokens are all too stale ({@link OutcomeReason#STALE}). Groups without trainable tokens join the
     * next batch. If a stage fails on a batch, its groups leave, and the next batch takes its number. Confined to one task.
     */
    final class BatchCutter {
        private final BatchConfig config;
        private final long maxVersions;
        private final BatchMaker maker;
        private final SeenOrdinals ordinals;
        private long nextBatchId;
        /** Rollouts dropped as stale since the last batch, and the version that the last one was behind. */
        private long staleSinceBatch;

        private long staleBehind;
        /** Whether the first batch id is known; in a later epoch the first version tells it. */
        private boolean isBegun;

        /**
         * @param maxVersions limit on staleness
         * @param isBegun whether the store has the next batch id; otherwise nothing is cut before {@link #begin}
         */
        BatchCutter(BatchConfig config, long maxVersions, BatchMaker maker, boolean isBegun) {
            this.isBegun = isBegun;
            this.config = config;
            this.maxVersions = maxVersions;
            this.maker = maker;
            this.nextBatchId = store.nextBatchId();
            this.ordinals = new SeenOrdinals(isBegun && nextBatchId == 0);
        }

        /** Continues after the batch of the epoch's first version. Idempotent. */
        void begin(long lastBatchId) {
            if (!isBegun) {
                memory.ifPresent(kept -> kept.begin(lastBatchId));
                isBegun = true;
                nextBatchId = lastBatchId + 1;
                store.putNextBatchId(nextBatchId);
            }
        }

        /** Number of batches cut, which bounds the batches consumed; unbounded until {@link #begin}. */
        long batches() {
            return isBegun ? nextBatchId : Long.MAX_VALUE;
        }

        /** Cuts as many batches as possible; groups that can be in none leave. */
        void cut(long decidedAtMs) {
            int atLeast = 1;
            while (isBegun && (config.maxOutstanding() == 0 || outstanding() < config.maxOutstanding())) {
                long lastChance = versions.expectedAtStep(nextBatchId) - maxVersions;
                List<Group> groups = queue.next(atLeast, lastChance);
                if (groups.isEmpty() || wouldOvertake(groups, lastChance)) {
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
                    stale.forEach(group -> leave(
                            group,
                            OutcomeReason.STALE,
                            decidedAtMs,
                            "all its tokens are more than " + maxVersions + " versions behind version " + atStep
                                    + ", at which the step on batch " + nextBatchId + " is expected to start"));
                } else if (freshness.containsValue(Freshness.SOME)) {
                    Map<String, Vectors> found = vectors.of(members);
                    List<Group> gone = groups.stream()
                            .filter(group -> !group.members().stream()
                                    .allMatch(member ->
                                            found.containsKey(member.sample().rolloutId())))
                            .toList();
                    if (!gone.isEmpty()) {
                        queue.remove(gone);
                        gone.forEach(group -> leave(
                                group,
                                OutcomeReason.GROUP_SHORT,
                                decidedAtMs,
                                "retention deleted a trajectory of its members; raise the topic's retention"
                                        + " above the time that batches wait for the learner"));
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
                                lengthReport(groups));
                    } catch (
                            IllegalArgumentException
                                    e) { // follows from the records alone, so a restart would meet it again
                        String why = "batch " + nextBatchId + " is given up: " + e.getMessage();
                        context.meters().batchFailed(why);
                        groups.forEach(group -> leave(group, OutcomeReason.STAGE_FAILED, decidedAtMs, why));
                        atLeast = 1;
                        continue;
                    }
                    take(batch);
                    nextBatchId++;
                    store.putNextBatchId(nextBatchId);
                    groups.forEach(AssemblyTask.this::forget);
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
         * True if cutting now would strand an older group in flight that no later batch could accept. A request without any
         * arrival is assumed to be as old as the oldest version in these groups. The cutter waits for it while the learner has
         * other batches, which costs nothing. After that the staleness limit may drop it.
         */
        private boolean wouldOvertake(List<Group> groups, long lastChance) {
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
                    || open.values().stream()
                            .anyMatch(group -> group.ordinal() < newest && group.oldestVersion() <= lastChance);
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
                                + " rollouts were dropped as stale since the previous batch, the last more than "
                                + maxVersions
                                + " versions behind version " + staleBehind));
            }
            return waits;
        }

        /**
         * Reports whether the order of groups favours short answers: compares the batched groups with those left behind.
         * Submission order cannot favour them, and there the groups left behind depend on timing, which would make two runs
         * over the same topics differ.
         */
        private StageReport lengthReport(List<Group> batched) {
            List<Member> taken = membersOf(batched);
            double mean = (double) tokensOf(taken) / taken.size();
            Map<String, Double> values = new TreeMap<>();
            values.put("mean_tokens", mean);
            if (config.order() != Order.SUBMISSION) {
                List<Member> waiting = new ArrayList<>(membersOf(queue.all()));
                waiting.addAll(membersOf(open.values()));
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

        /**
         * The requests with at least one arrival. Requests are numbered without a gap, so a request without an arrival is a
         * hole before later ones. A hole that was given up no longer counts. After a restart, holes before the first arrival
         * are ignored. Confined to one task.
         */
        static final class SeenOrdinals {
            private static final long NONE = -1;

            private final TreeSet<Long> seen = new TreeSet<>();
            /** Up to here there is no hole that the cutter waits for. */
            private long passed = NONE;

            private boolean isBegun;

            /** @param isBegun whether the run is at its beginning, so that the first request is 0 */
            SeenOrdinals(boolean isBegun) {
                this.isBegun = isBegun;
            }

            /** Records that a sample of a request has arrived. */
            void see(long ordinal) {
                if (!isBegun) {
                    isBegun = true;
                    passed = ordinal - 1;
                }
                if (ordinal > passed && seen.add(ordinal)) {
                    advance();
                }
            }

            /** Whether a request before this one has no arrival and was not given up. */
            boolean hasHoleBefore(long ordinal) {
                return passed + 1 < ordinal;
            }

            /** Gives up the holes before a request. */
            void giveUpBefore(long ordinal) {
                if (ordinal - 1 > passed) {
                    passed = ordinal - 1;
                    seen.headSet(ordinal).clear();
                    advance();
                }
            }

            private void advance() {
                while (seen.remove(passed + 1)) {
                    passed++;
                }
            }
        }
    }
}
