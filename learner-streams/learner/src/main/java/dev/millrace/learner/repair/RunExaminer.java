package dev.millrace.learner.repair;

import dev.millrace.learner.batch.BatchProgress;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.LogPlace;
import dev.millrace.log.run.LostOffsets;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.run.VersionKey;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.WeightsConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
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
    private final LogConnection connection;
    private final ClaimedRun claim;
    private final TopicsConfig topicsConfig;
    private final WeightsConfig weights;
    private final Duration patience;
    private final RunTopics topics;

    private final List<Inconsistency> found = new ArrayList<>();
    private final TrainingPast past = new TrainingPast();
    private final BatchMembers members;
    private boolean hasLostFirstSteps;

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
        this.members = new BatchMembers(topics.trajectories());
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
        Set<Long> foreign = new ConcurrentSkipListSet<>();
        LoadableVersions versions = there.contains(topics.policyVersions())
                ? LoadableVersions.read(connection, weights, foreign::add)
                : LoadableVersions.NONE;
        WaysOut ways = new WaysOut(connection::command, past, cost, versions.good());
        comparePlace(place, ways);
        compareChain(versions, ways);
        for (String role : LostOffsets.ROLES) {
            LostOffsets.of(connection, role, there)
                    .ifPresent(lost -> found.add(new Inconsistency("offsets-lost", lost, ways.newEpoch())));
        }
        findForeign(foreign);
        List<OpenTransaction> open = findOpen(there, openFor, ways);
        CommittedOffsets offsets = CommittedOffsets.read(connection, there);
        DueBatches due = new DueBatches(offsets, ways);
        List<Long> lost = versions.tip().map(tip -> due.lost(tip, there)).orElseGet(List::of);
        Map<String, Map<TopicPartition, OffsetAndMetadata>> outside = offsets.outside(!lost.isEmpty());
        outside.forEach((group, moves) -> moves.forEach((partition, to) -> found.add(new Inconsistency(
                "offset-outside",
                group + " has consumed " + partition + " up to offset " + offsets.committed(group, partition)
                        + ", and it holds " + offsets.range(partition) + ": its "
                        + (offsets.committed(group, partition) > to.offset() ? "end" : "beginning")
                        + " is lost",
                List.of(ways.moveOffset(to.offset()))))));
        return new Examined(found, versions.good(), lost, open, outside);
    }

    /** Only what is the last under its key: behind the others the learner has given the key back. */
    private void findForeign(Set<Long> offsets) {
        if (offsets.isEmpty()) {
            return;
        }
        Map<VersionKey, Long> last = new HashMap<>();
        try (TopicScan scan = connection.scan(patience)) {
            scan.read(
                    topics.policyVersions(),
                    scan.cut(List.of(topics.policyVersions())),
                    record -> VersionKey.parse(record.key())
                            .filter(key -> key.equals(VersionKey.of(connection.run(), key.version())))
                            .ifPresent(key -> last.put(key, record.offset())));
        }
        last.values().retainAll(offsets);
        last.entrySet().stream()
                .max(Map.Entry.comparingByValue())
                .ifPresent(newest -> found.add(new Inconsistency(
                        "foreign-manifest",
                        topics.policyVersions() + " has " + last.size()
                                + " records that do not extend the run's chain of versions, the last under the key of version "
                                + newest.getKey().version() + " at offset " + newest.getValue()
                                + "; somebody else than the run's learner wrote them",
                        List.of(WaysOut.await("a learner that runs sends them to " + topics.deadLetters()
                                + " and gives their keys back; nothing of the run is lost")))));
    }

    private List<OpenTransaction> findOpen(Set<String> there, Duration openFor, WaysOut ways) {
        List<OpenTransaction> open;
        try (Admin admin = Admin.create(connection.as("repair").admin())) {
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
                List.of(ways.abortTransaction()))));
        return open;
    }

    private SamplingCost readPast(Set<String> there) {
        List<String> read = new ArrayList<>(List.of(
                topics.trainingLog(),
                topics.batches(),
                topics.deadLetters(),
                topics.admission(),
                topics.rollouts(),
                topics.trajectories()));
        read.retainAll(there);
        try (TopicScan scan = connection.scan(patience)) {
            ConsistentCut cut = scan.cut(read);
            RefusedPlaces refused =
                    RefusedPlaces.read(scan, cut, topics.deadLetters(), Set.of(topics.trainingLog(), topics.batches()));
            if (cut.has(topics.trainingLog())) {
                hasLostFirstSteps = cut.partitions(topics.trainingLog()).stream()
                        .anyMatch(partition -> cut.of(partition).begin() > 0);
                scan.read(
                        topics.trainingLog(),
                        cut,
                        record -> decoded(record, TrainingStep.class)
                                .filter(step -> !refused.has(record)
                                        && isOurs(step.getRunId(), step.getEpoch(), step.getPolicyId()))
                                .ifPresent(past::step));
            }
            if (cut.has(topics.batches())) {
                scan.read(
                        topics.batches(),
                        cut,
                        record -> decoded(record, LearnerBatch.class)
                                .filter(batch -> !refused.has(record)
                                        && isOurs(batch.getRunId(), batch.getEpoch(), batch.getPolicyId()))
                                .ifPresent(batch -> {
                                    past.batch(
                                            batch.getBatchId(),
                                            batch.getEntries().size(),
                                            record.offset());
                                    members.add(batch);
                                }));
            }
            if (cut.has(topics.trajectories())) {
                cut.partitions(topics.trajectories())
                        .forEach(partition -> members.holds(partition.partition(), cut.of(partition)));
            }
            return SamplingCost.read(connection, scan, cut);
        }
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

    private void comparePlace(LogPlace place, WaysOut ways) {
        LogPlace recorded = claim.place();
        if (!recorded.clusterId().isEmpty() && !recorded.clusterId().equals(place.clusterId())) {
            found.add(new Inconsistency(
                    "other-cluster",
                    "the run was last claimed on cluster " + recorded.clusterId() + ", and this is cluster "
                            + place.clusterId(),
                    Stream.concat(Stream.of(WaysOut.await("reach the run's own cluster")), ways.newEpoch().stream())
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
                        ways.newEpoch()));
            }
        }
    }

    /** Whether the chain of versions and the training log tell the same story. */
    private void compareChain(LoadableVersions versions, WaysOut ways) {
        if (versions.tip().isEmpty()) {
            compareWithoutVersion(ways);
            return;
        }
        PolicyVersion tip = versions.tip().get();
        long newest = tip.getVersion();
        if (past.newestVersion() > newest) {
            List<Way> out = new ArrayList<>();
            long due = tip.getBatchId() + 1;
            if (past.hasBatches(due, past.lastBatch())) {
                out.add(WaysOut.await("the learner learns batches " + due + " to " + past.lastBatch()
                        + " again, which gives the same weights"));
            }
            out.addAll(ways.newEpoch());
            found.add(new Inconsistency(
                    "versions-lost",
                    "the training log made version " + past.newestVersion() + ", and " + topics.policyVersions()
                            + " ends with version " + newest,
                    out));
        }
        boolean isFirstOfEpoch = tip.getParentEpoch() != null;
        if (!isFirstOfEpoch && past.lastBatch() < tip.getBatchId() && !(past.isEmpty() && hasLostFirstSteps)) {
            found.add(new Inconsistency(
                    "steps-lost",
                    "version " + newest + " was made from batch " + tip.getBatchId() + ", and "
                            + topics.trainingLog()
                            + (past.isEmpty()
                                    ? " has no step of this epoch"
                                    : " ends with the step on batch " + past.lastBatch()),
                    List.of(WaysOut.await(
                            "training goes on; what became of the rollouts of these batches the ledger tells by the batches"
                                    + " alone"))));
        }
        if (!versions.unreadable().isEmpty()) {
            found.add(new Inconsistency("version-lost", versions.unreadable(), ways.newEpoch()));
        }
    }

    private void compareWithoutVersion(WaysOut ways) {
        if (connection.lineage().parent().isPresent() && past.isEmpty()) {
            Ancestor parent = connection.lineage().parent().get();
            found.add(new Inconsistency(
                    "epoch-unfinished",
                    "epoch " + connection.run().epoch() + " was begun from version " + parent.version() + " of epoch "
                            + parent.epoch() + ", and its first version is not there",
                    ways.firstOfEpoch(parent.version())));
        } else if (!past.isEmpty()) {
            found.add(new Inconsistency(
                    "chain-lost",
                    topics.policyVersions()
                            + " has no version of this epoch, and the training log made version "
                            + past.newestVersion()
                            + "; nothing on this log brings the weights back: import an archive of the run with millrace"
                            + " import, or begin another run",
                    ways.newEpoch()));
        }
    }

    /** Whether the batches that the learner is to train on next are there, and can be trained on. */
    private final class DueBatches {
        /** A batch and the marker of its transaction, at least. */
        private static final int OFFSETS_OF_A_BATCH = 2;
        /** Batches that may be lost in a row; an id further ahead is no batch of the run, and a list of those between would not end. */
        private static final long MOST_LOST = 100_000;

        private final CommittedOffsets offsets;
        private final WaysOut ways;

        DueBatches(CommittedOffsets offsets, WaysOut ways) {
            this.offsets = offsets;
            this.ways = ways;
        }

        /**
         * The batches that are due and will not come, in order.
         *
         * @param there topics of the run that exist
         */
        List<Long> lost(PolicyVersion tip, Set<String> there) {
            long due = past.due(tip);
            Optional<BatchProgress> said = offsets.learner().flatMap(offset -> BatchProgress.parse(offset.metadata()));
            if (said.isPresent() && past.newestVersion() <= tip.getVersion()) {
                due = Math.max(due, said.get().batchId() + 1);
            }
            long next = past.firstFrom(due);
            if (next == due) {
                return unusable(due);
            }
            while (next >= 0 && isStray(due, next)) {
                next = past.firstFrom(next + 1);
            }
            if (next < 0 && past.lastBatch() < due) { // it is still to be assembled, or was deleted
                return there.containsAll(List.of(
                                topics.outcomes(), topics.deadLetters(), topics.trajectories(), topics.trainingLog()))
                        ? deletedUnread(due)
                        : List.of();
            }
            long last = next < 0 ? past.lastBatch() : next - 1;
            if (last - due >= MOST_LOST) {
                found.add(new Inconsistency(
                        "step-stray",
                        "batch " + due + " is due, and " + topics.trainingLog() + " has a step on batch " + last
                                + ", more than " + MOST_LOST + " batches ahead: no learner of the run wrote it",
                        ways.newEpoch()));
                return List.of();
            }
            List<Long> lost = LongStream.rangeClosed(due, last).boxed().toList();
            found.add(new Inconsistency(
                    "batch-lost",
                    "batch " + due + " is due, and " + topics.batches() + " does not have "
                            + (lost.size() == 1 ? "it" : "batches " + due + " to " + last)
                            + (next < 0
                                    ? "; a step on it was taken before"
                                    : "; batch " + next + " is there and waits for it"),
                    waysWithout(lost)));
            return lost;
        }

        /**
         * Whether a batch ahead of the due one does not belong to the run: it repeats rollouts of an earlier batch, or
         * is further ahead than batches can be lost. The learner refuses it, so no batch needs to be given up for it.
         */
        private boolean isStray(long due, long ahead) {
            Optional<String> why = ahead - due > MOST_LOST
                    ? Optional.of("it is more than " + MOST_LOST + " batches ahead")
                    : members.whyRefused(ahead);
            boolean isPassed = offsets.learner()
                    .filter(read -> read.offset() > past.offset(ahead))
                    .isPresent();
            why.filter(clause -> !isPassed)
                    .ifPresent(clause -> found.add(new Inconsistency(
                            "batch-stray",
                            "batch " + ahead + " at offset " + past.offset(ahead) + " of " + topics.batches()
                                    + " is no batch that the learner takes: batch " + due + " is due, and " + clause,
                            List.of(WaysOut.await("the learner passes it over, and says so on " + topics.deadLetters()
                                    + " with its next version; it costs nothing")))));
            return why.isPresent();
        }

        /**
         * Batches that were deleted before the learner read them, and behind which none is left: told by what was to be in them. Fewer
         * than there were, where that is not certain: what is missed then shows as soon as another batch comes.
         */
        private List<Long> deletedUnread(long due) {
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
            found.add(new Inconsistency(
                    "batch-lost",
                    "batch " + due + " is due, and " + (count == 1 ? "it was" : "batches up to " + last + " were")
                            + " deleted unread: the learner has read " + partition.get() + " up to offset "
                            + deleted.get().begin() + ", which begins at offset "
                            + deleted.get().end() + " now, and " + waiting
                            + " rollouts that the topology has taken in are in no batch that is there",
                    waysWithout(lost)));
            return lost;
        }

        /** The due batch, and those right behind it, that are there and cannot be trained on. */
        private List<Long> unusable(long due) {
            Optional<String> why = members.whyUnusable(due);
            if (why.isEmpty()) {
                return List.of();
            }
            List<Long> unusable = new ArrayList<>();
            long batch = due;
            while (past.firstFrom(batch) == batch && members.whyUnusable(batch).isPresent()) {
                unusable.add(batch++);
            }
            found.add(new Inconsistency(
                    "batch-unusable",
                    "batch " + due + " is due and cannot be trained on: " + why.get(),
                    waysWithout(unusable)));
            return unusable;
        }

        private List<Way> waysWithout(List<Long> lost) {
            List<Way> out = new ArrayList<>();
            out.add(ways.skip(lost));
            out.addAll(ways.newEpoch());
            return out;
        }
    }
}
