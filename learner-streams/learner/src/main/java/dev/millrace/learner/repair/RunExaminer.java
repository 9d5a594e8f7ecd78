package dev.millrace.learner.repair;

import dev.millrace.learner.batch.BatchProgress;
import dev.millrace.learner.repair.Way.Kind;
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
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.function.LongConsumer;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Finds inconsistencies on the log of a run, in its current epoch. Writes nothing and joins no group.
 *
 * <p>Loads the newest version, or else the newest readable one, and reads every batch.
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

    /** @param patience longest wait without records */
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
     * Examines the run; call once.
     *
     * @param openFor age from which an open transaction is reported
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

    /** Reports foreign manifests that are the last of their key; the learner has overwritten the others. */
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
                                + "; a process other than the run's learner wrote them",
                        List.of(WaysOut.await("a running learner sends them to " + topics.deadLetters()
                                + " and restores their keys; no record of the run is lost")))));
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
                                ? "a transaction unknown to its coordinator"
                                : "a transaction of " + each.transactionalId())
                        + " has been open for " + each.openFor().toSeconds() + " s, and read_committed consumers do"
                        + " not see the records after it on "
                        + each.at().stream()
                                .map(spec -> spec.topicPartition().toString())
                                .sorted()
                                .collect(Collectors.joining(", "))
                        + " until it ends",
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
                        record -> JoinedRollouts.decoded(connection, record, TrainingStep.class)
                                .filter(step -> !refused.has(record)
                                        && isOurs(step.getRunId(), step.getEpoch(), step.getPolicyId()))
                                .ifPresent(past::step));
            }
            if (cut.has(topics.batches())) {
                scan.read(
                        topics.batches(),
                        cut,
                        record -> JoinedRollouts.decoded(connection, record, LearnerBatch.class)
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

    private void comparePlace(LogPlace place, WaysOut ways) {
        LogPlace recorded = claim.place();
        if (!recorded.clusterId().isEmpty() && !recorded.clusterId().equals(place.clusterId())) {
            found.add(new Inconsistency(
                    "other-cluster",
                    "the run was last claimed on cluster " + recorded.clusterId() + ", and this is cluster "
                            + place.clusterId(),
                    Stream.concat(
                                    Stream.of(WaysOut.await("connect to the run's own cluster")),
                                    ways.newEpoch().stream())
                            .toList()));
        }
        for (String topic : new TreeSet<>(recorded.topicIds().keySet())) {
            String now = place.topicIds().get(topic);
            if (!Objects.equals(recorded.topicIds().get(topic), now)) {
                found.add(new Inconsistency(
                        now == null ? "topic-deleted" : "topic-replaced",
                        now == null
                                ? "topic " + topic + " was deleted; the next role to start creates it empty"
                                : "topic " + topic + " was deleted and recreated: its records are lost",
                        ways.newEpoch()));
            }
        }
    }

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
                out.add(WaysOut.await("the learner trains on batches " + due + " to " + past.lastBatch()
                        + " again and reaches the same weights"));
            }
            out.addAll(ways.newEpoch());
            found.add(new Inconsistency(
                    "versions-lost",
                    "the training log has version " + past.newestVersion() + ", and " + topics.policyVersions()
                            + " ends with version " + newest,
                    out));
        }
        boolean isFirstOfEpoch = tip.getParentEpoch() != null;
        if (!isFirstOfEpoch && past.lastBatch() < tip.getBatchId() && !(past.isEmpty() && hasLostFirstSteps)) {
            found.add(
                    new Inconsistency(
                            "steps-lost",
                            "version " + newest + " was made from batch " + tip.getBatchId() + ", and "
                                    + topics.trainingLog()
                                    + (past.isEmpty()
                                            ? " has no step of this epoch"
                                            : " ends with the step on batch " + past.lastBatch()),
                            List.of(
                                    WaysOut.await(
                                            "training continues; the ledger counts the rollouts of these batches from the batches alone"))));
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
                    "epoch " + connection.run().epoch() + " was started from version " + parent.version() + " of epoch "
                            + parent.epoch() + " and has no first version",
                    ways.firstOfEpoch(parent.version())));
        } else if (!past.isEmpty()) {
            found.add(new Inconsistency(
                    "chain-lost",
                    topics.policyVersions()
                            + " has no version of this epoch, and the training log has version "
                            + past.newestVersion()
                            + "; this log cannot restore the weights: import an archive of the run with millrace"
                            + " import, or start another run",
                    ways.newEpoch()));
        }
    }

    /** Checks that the due batches exist and can be trained on. */
    private final class DueBatches {
        /** A batch and the marker of its transaction. */
        private static final int OFFSETS_OF_A_BATCH = 2;
        /** Most batches lost in a row; a batch further ahead is foreign. */
        private static final long MOST_LOST = 100_000;

        private final CommittedOffsets offsets;
        private final WaysOut ways;

        DueBatches(CommittedOffsets offsets, WaysOut ways) {
            this.offsets = offsets;
            this.ways = ways;
        }

        /**
         * The lost batches from the due one on, in order.
         *
         * @param there existing topics of the run
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
                            + (next < 0 ? "; a step was already made on it" : "; batch " + next + " waits for it"),
                    waysWithout(lost)));
            return lost;
        }

        /**
         * Whether a batch ahead of the due one is foreign: it repeats rollouts of an earlier batch, or is more than {@value
         * #MOST_LOST} batches ahead. The learner refuses it, so no batch is skipped for it.
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
                                    + " is refused by the learner: batch " + due + " is due, and " + clause,
                            List.of(WaysOut.await("the learner skips it and writes a dead letter to "
                                    + topics.deadLetters() + " with its next version; no cost")))));
            return why.isPresent();
        }

        /**
         * Batches deleted unread at the end of the log, inferred from the trajectories that no batch has. A lower bound: the next
         * batch shows any others.
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
                            + " rollouts that the topology has read are in no existing batch",
                    waysWithout(lost)));
            return lost;
        }

        /** The due batch and its direct successors, as far as they exist and cannot be trained on. */
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

    /** Ways out of an inconsistency, each with its cost. */
    static final class WaysOut {
        private final UnaryOperator<String> command;
        private final TrainingPast past;
        private final SamplingCost cost;
        private final OptionalLong goodVersion;

        /**
         * @param command completes the first words of a command for this run
         * @param past steps that a new epoch discards
         * @param goodVersion newest version that a new epoch can start from; empty if none
         */
        WaysOut(UnaryOperator<String> command, TrainingPast past, SamplingCost cost, OptionalLong goodVersion) {
            this.command = command;
            this.past = past;
            this.cost = cost;
            this.goodVersion = goodVersion;
        }

        /** Nothing to do here: the run recovers, or a person outside acts. */
        static Way await(String does) {
            return new Way(Kind.WAIT, does, OptionalDouble.of(0), "");
        }

        /** A new epoch from the newest loadable version; empty without one. */
        List<Way> newEpoch() {
            if (goodVersion.isEmpty()) {
                return List.of();
            }
            long version = goodVersion.getAsLong();
            return List.of(new Way(
                    Kind.NEW_EPOCH,
                    "continues from version " + version + " in a new epoch; rollouts in flight are superseded"
                            + (past.rolloutsBehind(version) == 0 ? "" : ", and later steps are discarded"),
                    cost.ofNewEpoch(past.rolloutsBehind(version)),
                    rollback(version)));
        }

        /** Publishes the missing first version of an epoch; empty if its source cannot be read. */
        List<Way> firstOfEpoch(long version) {
            return goodVersion.isEmpty()
                    ? List.of()
                    : List.of(new Way(
                            Kind.NEW_EPOCH,
                            "publishes version " + version + " as the epoch's first; a starting learner does the same",
                            OptionalDouble.of(0),
                            rollback(version)));
        }

        private String rollback(long version) {
            return command.apply("rollback --to-version " + version);
        }

        /** @param lost at least one batch, in order */
        Way skip(List<Long> lost) {
            long last = lost.get(lost.size() - 1);
            return new Way(
                    Kind.SKIP_BATCH,
                    "skips " + (lost.size() == 1 ? "it" : "batches " + lost.get(0) + " to " + last)
                            + " and releases as many prompts; the learner continues with batch " + (last + 1),
                    cost.of((long) past.usualRollouts() * lost.size()),
                    repair(Kind.SKIP_BATCH));
        }

        Way moveOffset(long to) {
            return new Way(
                    Kind.MOVE_OFFSET,
                    "the group continues at offset " + to + "; stop its role first",
                    OptionalDouble.of(0),
                    repair(Kind.MOVE_OFFSET));
        }

        Way abortTransaction() {
            return new Way(
                    Kind.ABORT_TRANSACTION,
                    "aborts it; a role that still writes it retries, and rewrites its records",
                    OptionalDouble.of(0),
                    repair(Kind.ABORT_TRANSACTION));
        }

        private String repair(Kind kind) {
            return command.apply("repair --do " + kind.word());
        }
    }

    /** The rollouts that the batches of one epoch name, compared with the trajectories on the log. Not thread-safe. */
    static final class BatchMembers {
        private final String topic;
        /** The trajectory offsets that each batch needs, by partition. */
        private final Map<Long, Map<Integer, OffsetRange>> needs = new HashMap<>();
        /** The trajectory offsets on the log, by partition. */
        private final Map<Integer, OffsetRange> trajectories = new HashMap<>();

        private final Map<String, Long> batchOf = new HashMap<>();
        /** By batch, why the learner refuses it, such as a rollout that an earlier batch has. */
        private final Map<Long, String> repeats = new HashMap<>();

        BatchMembers(String topic) {
            this.topic = topic;
        }

        /** Adds a batch, in log order; a second one with the same id does not change the needed offsets. */
        void add(LearnerBatch batch) {
            if (batch.getEntries().stream()
                    .anyMatch(entry -> entry.getOffset() < 0 || entry.getOffset() == Long.MAX_VALUE)) {
                repeats.putIfAbsent(batch.getBatchId(), "it names an offset of " + topic + " that no topic has");
                return;
            }
            needs.putIfAbsent(batch.getBatchId(), needs(batch));
            batch.getEntries().forEach(entry -> {
                Long first = batchOf.putIfAbsent(entry.getRolloutId(), batch.getBatchId());
                if (first != null && first != batch.getBatchId()) {
                    repeats.putIfAbsent(
                            batch.getBatchId(),
                            "it has rollout " + entry.getRolloutId() + ", which batch " + first
                                    + " had, so the log may have lost the topology's offsets");
                }
            });
        }

        void holds(int partition, OffsetRange range) {
            trajectories.put(partition, range);
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

        /** Returns why a batch on the log cannot be trained on, as a clause; empty if it can. */
        Optional<String> whyUnusable(long batch) {
            return missing(batch).or(() -> Optional.ofNullable(repeats.get(batch)));
        }

        /**
         * Returns why the learner refuses a batch regardless of the batches before it, as a clause; empty if it does not.
         */
        Optional<String> whyRefused(long batch) {
            return Optional.ofNullable(repeats.get(batch));
        }

        /** Returns the offsets that a batch needs and the log lacks, as a clause; empty if the log has all. */
        private Optional<String> missing(long batch) {
            for (Map.Entry<Integer, OffsetRange> need :
                    needs.getOrDefault(batch, Map.of()).entrySet()) {
                OffsetRange there = trajectories.getOrDefault(need.getKey(), new OffsetRange(0, 0));
                if (need.getValue().begin() < there.begin() || need.getValue().end() > there.end()) {
                    return Optional.of("it names offsets " + words(need.getValue()) + " of " + topic + "-"
                            + need.getKey() + ", which holds " + words(there));
                }
            }
            return Optional.empty();
        }

        private static String words(OffsetRange range) {
            return range.begin() == range.end() ? "none" : range.begin() + " to " + (range.end() - 1);
        }
    }

    /**
     * Versions that a run can resume from. Loads the newest, or else older ones until one loads.
     *
     * @param tip newest manifest of the epoch; empty without one
     * @param good newest version that loads; empty if none does
     * @param unreadable why the newest version does not load; empty if it does
     */
    record LoadableVersions(Optional<PolicyVersion> tip, OptionalLong good, String unreadable) {
        static final LoadableVersions NONE = new LoadableVersions(Optional.empty(), OptionalLong.empty(), "");

        private static final int MOST_TRIED = 32;

        /** @param onForeign receives the offset of each record off the chain, on another thread */
        static LoadableVersions read(LogConnection connection, WeightsConfig weights, LongConsumer onForeign) {
            Optional<PolicyVersion> tip;
            OptionalLong good = OptionalLong.empty();
            String whyNot = "";
            try (PolicyFeed feed = new PolicyFeed(connection, weights, onForeign)) {
                tip = feed.newestCommitted();
                long newest = tip.map(PolicyVersion::getVersion)
                        .orElseGet(() -> connection
                                .lineage()
                                .parent()
                                .map(Ancestor::version)
                                .orElse(-1L));
                if (tip.isPresent()) {
                    whyNot = whyNotLoaded(feed, tip.get());
                }
                long version = newest;
                for (int tried = 0; version >= 0 && tried < MOST_TRIED && good.isEmpty(); tried++) {
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
                        good = OptionalLong.of(version);
                    } catch (VersionUnavailableException | CorruptVersionException e) {
                        whyNot = whyNot.isEmpty() ? String.valueOf(e.getMessage()) : whyNot;
                    }
                    version--;
                }
            }
            String unreadable = tip.isPresent() && !whyNot.isEmpty()
                    ? "version " + tip.get().getVersion() + ", the newest, cannot be read: " + whyNot
                    : "";
            return new LoadableVersions(tip, good, unreadable);
        }

        /** Why the weights of a version between checkpoints do not load; empty if they do, and for a checkpoint. */
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
    }
}
