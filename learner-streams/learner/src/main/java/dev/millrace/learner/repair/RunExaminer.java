package dev.millrace.learner.repair;

import dev.millrace.learner.batch.BatchProgress;
import dev.millrace.learner.repair.Way.Kind;
import dev.millrace.learner.rollback.FirstVersion;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.LogPlace;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.log.topics.TopicAdministration;
import dev.millrace.log.topics.TopicsConfig;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Looks for what is inconsistent on the log of a run, in the epoch in which it is. Writes nothing and joins no group.
 *
 * <p>The newest version is read whole, and where it cannot be, older ones until one can; of the batches every record is read.
 */
public final class RunExaminer {
    /** Older versions that are tried where the newest cannot be read. */
    private static final int MOST_TRIED = 32;

    /** A batch and the marker of its transaction, at least. */
    private static final int OFFSETS_OF_A_BATCH = 2;

    private static final String ROLLBACK = "rollback --to-version ";

    private final LogConnection connection;
    private final ClaimedRun claim;
    private final TopicsConfig topicsConfig;
    private final WeightsConfig weights;
    private final Duration patience;
    private final RunTopics topics;

    private final List<Inconsistency> found = new ArrayList<>();
    private final TrainingPast past = new TrainingPast();
    /** Which offsets of trajectories each batch needs, by partition. */
    private final Map<Long, Map<Integer, OffsetRange>> needs = new HashMap<>();
    /** Which there are. */
    private final Map<Integer, OffsetRange> trajectories = new HashMap<>();

    /** The first batch that has a rollout. */
    private final Map<String, Long> batchOf = new HashMap<>();
    /** By batch, what it has that another had before it. */
    private final Map<Long, String> repeats = new HashMap<>();

    private boolean hasLostFirstSteps;
    private OptionalLong goodVersion = OptionalLong.empty();
    /** Why the newest version cannot be gone on from; empty if it can. */
    private String unreadable = "";

    /** @param patience how long to wait while nothing arrives */
    public RunExaminer(
            LogConnection connection,
            ClaimedRun claim,
            TopicsConfig topicsConfig,
            WeightsConfig weights,
            Duration patience) {
        this.connection = connection;
        this.claim = claim;
        this.topicsConfig = topicsConfig;
        this.weights = weights;
        this.patience = patience;
        this.topics = connection.topics();
    }

    /**
     * Looks; used once.
     *
     * @param openFor a transaction may be open for so long
     * @throws dev.millrace.log.scan.ScanException if the log cannot be read to its end
     */
    public Examined examine(Duration openFor) {
        Set<String> there;
        LogPlace place;
        try (TopicAdministration administration =
                new TopicAdministration(connection.clientProperties(), topicsConfig)) {
            there = administration.existing(topics.all());
            place = new LogPlace(administration.clusterId(), administration.ids(there));
        }
        SamplingCost cost = readPast(there);
        Optional<PolicyVersion> tip = there.contains(topics.policyVersions()) ? newest() : Optional.empty();
        comparePlace(place, cost);
        compareVersions(tip, cost);
        List<OpenTransaction> open = findOpen(there, openFor);
        CommittedOffsets offsets = CommittedOffsets.read(connection, there);
        List<Long> lost = tip.isPresent() ? compareBatches(tip.get(), there, offsets, cost) : List.of();
        Map<String, Map<TopicPartition, OffsetAndMetadata>> outside = offsets.outside(!lost.isEmpty());
        outside.forEach((group, moves) -> moves.forEach((partition, to) -> found.add(new Inconsistency(
                "offset-outside",
                group + " has consumed " + partition + " up to offset " + offsets.committed(group, partition)
                        + ", and it holds " + offsets.range(partition) + ": its "
                        + (offsets.committed(group, partition) > to.offset() ? "end" : "beginning")
                        + " is lost",
                List.of(new Way(
                        Kind.MOVE_OFFSET,
                        "the group goes on at offset " + to.offset() + "; stop its role first",
                        OptionalDouble.of(0),
                        does(Kind.MOVE_OFFSET)))))));
        return new Examined(found, goodVersion, lost, open, outside);
    }

    private List<OpenTransaction> findOpen(Set<String> there, Duration openFor) {
        List<OpenTransaction> open;
        try (Admin admin = Admin.create(connection.admin())) {
            open = new OpenTransactions(admin, System.currentTimeMillis())
                    .on(there).stream()
                            .filter(each -> each.openFor().compareTo(openFor) >= 0)
                            .toList();
        }
        open.forEach(each -> found.add(new Inconsistency(
                "open-transaction",
                (each.transactionalId().isEmpty()
                                ? "a transaction that no coordinator knows"
                                : "a transaction of " + each.transactionalId())
                        + " has been open for " + each.openFor().toSeconds() + " s, and what lies behind it on "
                        + each.at().stream()
                                .map(spec -> spec.topicPartition().toString())
                                .sorted()
                                .collect(Collectors.joining(", "))
                        + " is given to nobody until it ends",
                List.of(new Way(
                        Kind.ABORT_TRANSACTION,
                        "aborts it; a role that still writes it begins again by itself, and what was in it is made again",
                        OptionalDouble.of(0),
                        does(Kind.ABORT_TRANSACTION))))));
        return open;
    }

    private SamplingCost readPast(Set<String> there) {
        List<String> read = new ArrayList<>(List.of(
                topics.trainingLog(), topics.batches(), topics.admission(), topics.rollouts(), topics.trajectories()));
        read.retainAll(there);
        try (TopicScan scan = new TopicScan(connection, patience)) {
            ConsistentCut cut = scan.cut(read);
            if (cut.has(topics.trainingLog())) {
                hasLostFirstSteps = cut.partitions(topics.trainingLog()).stream()
                        .anyMatch(partition -> cut.of(partition).begin() > 0);
                scan.read(
                        topics.trainingLog(),
                        cut,
                        record -> decoded(record, TrainingStep.class)
                                .filter(step -> isOurs(step.getRunId(), step.getEpoch(), step.getPolicyId()))
                                .ifPresent(past::step));
            }
            if (cut.has(topics.batches())) {
                scan.read(
                        topics.batches(),
                        cut,
                        record -> decoded(record, LearnerBatch.class)
                                .filter(batch -> isOurs(batch.getRunId(), batch.getEpoch(), batch.getPolicyId()))
                                .ifPresent(batch -> {
                                    past.batch(
                                            batch.getBatchId(),
                                            batch.getEntries().size(),
                                            record.offset());
                                    needs.putIfAbsent(batch.getBatchId(), needs(batch));
                                    compareMembers(batch);
                                }));
            }
            if (cut.has(topics.trajectories())) {
                cut.partitions(topics.trajectories())
                        .forEach(partition -> trajectories.put(partition.partition(), cut.of(partition)));
            }
            return SamplingCost.read(connection, scan, cut);
        }
    }

    private void compareMembers(LearnerBatch batch) {
        batch.getEntries().forEach(entry -> {
            Long first = batchOf.putIfAbsent(entry.getRolloutId(), batch.getBatchId());
            if (first != null && first != batch.getBatchId()) {
                repeats.putIfAbsent(
                        batch.getBatchId(),
                        "it has rollout " + entry.getRolloutId() + ", which batch " + first
                                + " had, as where the log has lost how far the topology had read");
            }
        });
    }

    private static Map<Integer, OffsetRange> needs(LearnerBatch batch) {
        Map<Integer, OffsetRange> needs = new HashMap<>();
        batch.getEntries()
                .forEach(entry -> needs.merge(
                        entry.getPartition(),
                        new OffsetRange(entry.getOffset(), entry.getOffset() + 1),
                        (one, other) -> new OffsetRange(
                                Math.min(one.begin(), other.begin()), Math.max(one.end(), other.end()))));
        return needs;
    }

    private static String words(OffsetRange range) {
        return range.begin() == range.end() ? "none" : range.begin() + " to " + (range.end() - 1);
    }

    /** Why a batch that is there cannot be trained on, as a clause; empty if it can. */
    private Optional<String> whyUnusable(long batch) {
        return missing(batch).or(() -> Optional.ofNullable(repeats.get(batch)));
    }

    /** What a batch needs and the log does not hold, as a clause; empty if it holds all. */
    private Optional<String> missing(long batch) {
        for (Map.Entry<Integer, OffsetRange> need :
                needs.getOrDefault(batch, Map.of()).entrySet()) {
            OffsetRange there = trajectories.getOrDefault(need.getKey(), new OffsetRange(0, 0));
            if (need.getValue().begin() < there.begin() || need.getValue().end() > there.end()) {
                return Optional.of("it names offsets " + words(need.getValue()) + " of " + topics.trajectories() + "-"
                        + need.getKey() + ", which holds " + words(there));
            }
        }
        return Optional.empty();
    }

    private boolean isOurs(String runId, int epoch, String policyId) {
        return connection.run().owns(runId, epoch)
                && connection.run().policyId().equals(policyId);
    }

    private <T extends SpecificRecord> Optional<T> decoded(ConsumerRecord<byte[], byte[]> record, Class<T> type) {
        try {
            return Optional.ofNullable(AvroSerde.of(type, connection.registry())
                    .deserializer()
                    .deserialize(record.topic(), record.value()));
        } catch (MalformedRecordException e) {
            return Optional.empty(); // a dead letter by the role that reads it
        }
    }

    /** The newest manifest of the epoch; on the way, the newest version that can be gone on from. */
    private Optional<PolicyVersion> newest() {
        Optional<PolicyVersion> tip;
        String whyNot = "";
        try (PolicyFeed feed = new PolicyFeed(connection, weights)) {
            tip = feed.newestCommitted();
            long newest = tip.map(PolicyVersion::getVersion)
                    .orElseGet(() ->
                            connection.lineage().parent().map(Ancestor::version).orElse(-1L));
            if (tip.isPresent()) {
                whyNot = whyNotLoaded(feed, tip.get());
            }
            long version = newest;
            for (int tried = 0; version >= 0 && tried < MOST_TRIED && goodVersion.isEmpty(); tried++) {
                try {
                    int epoch;
                    if (tip.isPresent()) {
                        PolicyVersion checkpoint = Checkpoints.atOrBefore(feed::manifest, version);
                        version = checkpoint.getVersion();
                        epoch = checkpoint.getEpoch();
                    } else {
                        epoch = connection.lineage().parent().orElseThrow().epoch();
                    }
                    FirstVersion.read(connection, weights, epoch, version);
                    goodVersion = OptionalLong.of(version);
                } catch (VersionUnavailableException | CorruptVersionException e) {
                    whyNot = whyNot.isEmpty() ? String.valueOf(e.getMessage()) : whyNot;
                }
                version--;
            }
        }
        if (tip.isPresent() && !whyNot.isEmpty()) {
            unreadable = "version " + tip.get().getVersion() + ", the newest, cannot be read: " + whyNot;
        }
        return tip;
    }

    /** Why the weights of a version between checkpoints cannot be had; empty if they can, and of a checkpoint, which is read anyway. */
    private static String whyNotLoaded(PolicyFeed feed, PolicyVersion version) {
        if (!Checkpoints.is(version)) {
            try {
                feed.load(version.getVersion());
            } catch (VersionUnavailableException | CorruptVersionException e) {
                return String.valueOf(e.getMessage());
            }
        }
        return "";
    }

    private void comparePlace(LogPlace place, SamplingCost cost) {
        LogPlace recorded = claim.place();
        if (!recorded.clusterId().isEmpty() && !recorded.clusterId().equals(place.clusterId())) {
            found.add(new Inconsistency(
                    "other-cluster",
                    "the run was last claimed on cluster " + recorded.clusterId() + ", and this is cluster "
                            + place.clusterId(),
                    Stream.concat(
                                    Stream.of(new Way(
                                            Kind.WAIT, "reach the run's own cluster", OptionalDouble.of(0), "")),
                                    newEpoch(cost).stream())
                            .toList()));
        }
        for (String topic : new TreeSet<>(recorded.topicIds().keySet())) {
            String now = place.topicIds().get(topic);
            if (!Objects.equals(recorded.topicIds().get(topic), now)) {
                found.add(new Inconsistency(
                        now == null ? "topic-deleted" : "topic-replaced",
                        now == null
                                ? "topic " + topic + " was deleted; a role that starts makes an empty one"
                                : "topic " + topic + " was deleted and made again: what it held is gone",
                        newEpoch(cost)));
            }
        }
    }

    private void compareVersions(Optional<PolicyVersion> tip, SamplingCost cost) {
        if (tip.isEmpty()) {
            if (connection.lineage().parent().isPresent() && past.isEmpty()) {
                Ancestor parent = connection.lineage().parent().get();
                found.add(new Inconsistency(
                        "epoch-unfinished",
                        "epoch " + connection.run().epoch() + " was begun from version " + parent.version()
                                + " of epoch " + parent.epoch() + ", and its first version is not there",
                        goodVersion.isEmpty()
                                ? List.of()
                                : List.of(new Way(
                                        Kind.NEW_EPOCH,
                                        "publishes version " + parent.version()
                                                + " as the epoch's first; a learner that starts does the same",
                                        OptionalDouble.of(0),
                                        connection.command(ROLLBACK + parent.version())))));
            } else if (!past.isEmpty()) {
                found.add(new Inconsistency(
                        "chain-lost",
                        topics.policyVersions() + " has no version of this epoch, and the training log made version "
                                + past.newestVersion()
                                + "; nothing on this log brings the weights back: import an archive of the run with millrace"
                                + " import, or begin another run",
                        newEpoch(cost)));
            }
            return;
        }
        long newest = tip.get().getVersion();
        if (past.newestVersion() > newest) {
            List<Way> ways = new ArrayList<>();
            long due = tip.get().getBatchId() + 1;
            if (past.hasBatches(due, past.lastBatch())) {
                ways.add(new Way(
                        Kind.WAIT,
                        "the learner learns batches " + due + " to " + past.lastBatch()
                                + " again, which gives the same weights",
                        OptionalDouble.of(0),
                        ""));
            }
            ways.addAll(newEpoch(cost));
            found.add(new Inconsistency(
                    "versions-lost",
                    "the training log made version " + past.newestVersion() + ", and " + topics.policyVersions()
                            + " ends with version " + newest,
                    ways));
        }
        boolean isFirstOfEpoch = tip.get().getParentEpoch() != null;
        if (!isFirstOfEpoch && past.lastBatch() < tip.get().getBatchId() && !(past.isEmpty() && hasLostFirstSteps)) {
            found.add(new Inconsistency(
                    "steps-lost",
                    "version " + newest + " was made from batch " + tip.get().getBatchId() + ", and "
                            + topics.trainingLog()
                            + (past.isEmpty()
                                    ? " has no step of this epoch"
                                    : " ends with the step on batch " + past.lastBatch()),
                    List.of(new Way(
                            Kind.WAIT,
                            "training goes on; what became of the rollouts of these batches the ledger tells by the batches"
                                    + " alone",
                            OptionalDouble.of(0),
                            ""))));
        }
        if (!unreadable.isEmpty()) {
            found.add(new Inconsistency("version-lost", unreadable, newEpoch(cost)));
        }
    }

    private List<Long> compareBatches(
            PolicyVersion tip, Set<String> there, CommittedOffsets offsets, SamplingCost cost) {
        long due = past.due(tip);
        Optional<BatchProgress> said = offsets.learner().flatMap(offset -> BatchProgress.parse(offset.metadata()));
        if (said.isPresent() && past.newestVersion() <= tip.getVersion()) {
            due = Math.max(due, said.get().batchId() + 1);
        }
        long next = past.firstFrom(due);
        if (next == due) {
            return unusable(due, cost);
        }
        if (next < 0 && past.lastBatch() < due) { // it is still to be assembled, or was deleted
            return there.containsAll(List.of(topics.outcomes(), topics.trajectories(), topics.trainingLog()))
                    ? deletedUnread(due, offsets, cost)
                    : List.of();
        }
        long last = next < 0 ? past.lastBatch() : next - 1;
        List<Long> lost = LongStream.rangeClosed(due, last).boxed().toList();
        List<Way> ways = new ArrayList<>();
        ways.add(skip(lost, cost));
        ways.addAll(newEpoch(cost));
        found.add(new Inconsistency(
                "batch-lost",
                "batch " + due + " is due, and " + topics.batches() + " does not have "
                        + (lost.size() == 1 ? "it" : "batches " + due + " to " + last)
                        + (next < 0
                                ? "; a step on it was taken before"
                                : "; batch " + next + " is there and waits for it"),
                ways));
        return lost;
    }

    /**
     * Batches that were deleted before the learner read them, and behind which none is left: told by what was to be in them. Fewer
     * than there were, where that is not certain: what is missed then shows as soon as another batch comes.
     */
    private List<Long> deletedUnread(long due, CommittedOffsets offsets, SamplingCost cost) {
        Optional<OffsetRange> deleted = offsets.deletedUnread();
        Optional<TopicPartition> partition = offsets.batches();
        long batches = deleted.map(range -> (range.end() - range.begin()) / OFFSETS_OF_A_BATCH)
                .orElse(0L);
        if (deleted.isEmpty() || partition.isEmpty() || batches == 0) {
            return List.of(); // a marker of the transaction whose batch was read
        }
        JoinedRollouts joined = new JoinedRollouts(connection, partition.get(), patience, offsets::topology);
        long waiting = joined.whole();
        if (waiting == 0 || waiting <= past.usualRollouts() - joined.groupSize()) {
            return List.of(); // not enough for a batch
        }
        int usual = past.usualRollouts();
        long count = usual == 0 ? 1 : Math.max(1, Math.min(batches, waiting / usual));
        long last = due + count - 1;
        List<Long> lost = LongStream.rangeClosed(due, last).boxed().toList();
        List<Way> ways = new ArrayList<>();
        ways.add(skip(lost, cost));
        ways.addAll(newEpoch(cost));
        found.add(new Inconsistency(
                "batch-lost",
                "batch " + due + " is due, and " + (count == 1 ? "it was" : "batches up to " + last + " were")
                        + " deleted unread: the learner has read " + partition.get() + " up to offset "
                        + deleted.get().begin() + ", which begins at offset "
                        + deleted.get().end() + " now, and " + waiting
                        + " rollouts that the topology has taken in are in no batch that is there",
                ways));
        return lost;
    }

    private Way skip(List<Long> lost, SamplingCost cost) {
        long last = lost.get(lost.size() - 1);
        return new Way(
                Kind.SKIP_BATCH,
                "gives " + (lost.size() == 1 ? "it" : "batches " + lost.get(0) + " to " + last)
                        + " up and releases as many prompts; the learner goes on with batch " + (last + 1),
                cost.of((long) past.usualRollouts() * lost.size()),
                does(Kind.SKIP_BATCH));
    }

    /** The due batch, and those right behind it, that are there and cannot be trained on. */
    private List<Long> unusable(long due, SamplingCost cost) {
        Optional<String> why = whyUnusable(due);
        if (why.isEmpty()) {
            return List.of();
        }
        List<Long> unusable = new ArrayList<>();
        long batch = due;
        while (past.firstFrom(batch) == batch && whyUnusable(batch).isPresent()) {
            unusable.add(batch++);
        }
        List<Way> ways = new ArrayList<>();
        ways.add(skip(unusable, cost));
        ways.addAll(newEpoch(cost));
        found.add(new Inconsistency(
                "batch-unusable", "batch " + due + " is due and cannot be trained on: " + why.get(), ways));
        return unusable;
    }

    private List<Way> newEpoch(SamplingCost cost) {
        if (goodVersion.isEmpty()) {
            return List.of();
        }
        long version = goodVersion.getAsLong();
        return List.of(new Way(
                Kind.NEW_EPOCH,
                "goes on from version " + version + " in a new epoch; what is in flight is superseded"
                        + (past.rolloutsBehind(version) == 0 ? "" : ", and later steps are given up"),
                cost.ofNewEpoch(past.rolloutsBehind(version)),
                connection.command(ROLLBACK + version)));
    }

    private String does(Kind kind) {
        return connection.command("repair --do " + kind.word());
    }
}
