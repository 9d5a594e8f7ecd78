package dev.millrace.learner.repair;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.LogPlace;
import dev.millrace.log.run.LostOffsets;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.TrainingStep;
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
        found.addAll(new ChainCheck(connection, past, hasLostFirstSteps, ways).compare(versions));
        for (String role : LostOffsets.ROLES) {
            LostOffsets.of(connection, role, there)
                    .ifPresent(lost -> found.add(new Inconsistency("offsets-lost", lost, ways.newEpoch())));
        }
        findForeign(foreign);
        List<OpenTransaction> open = findOpen(there, openFor, ways);
        CommittedOffsets offsets = CommittedOffsets.read(connection, there);
        DueBatches due = new DueBatches(connection, past, members, offsets, ways, patience, found::add);
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
        try (TopicScan scan = new TopicScan(connection, patience)) {
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
        try (TopicScan scan = new TopicScan(connection, patience)) {
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
}
