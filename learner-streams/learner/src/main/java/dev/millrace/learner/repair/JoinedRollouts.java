package dev.millrace.learner.repair;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.RefusedPlaces;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.ToLongFunction;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * The rollouts that were joined in one epoch, compared with the batches on the log: finds those that are in no batch
 * and have not left. Reads the whole topic. Not thread-safe.
 */
final class JoinedRollouts {
    record Joined(String rolloutId, String groupId, long newestVersion, LogCoordinates source) {
        private static Joined of(Trajectory trajectory) {
            return new Joined(
                    trajectory.getRolloutId(),
                    trajectory.getGroupId(),
                    trajectory.getVersionSpans().stream()
                            .mapToLong(VersionSpan::getVersion)
                            .max()
                            .orElse(-1),
                    trajectory.getRolloutSource());
        }

        private static Joined of(LearnerBatch batch, BatchEntry entry, String rollouts) {
            return new Joined(
                    entry.getRolloutId(),
                    entry.getGroupId(),
                    batch.getAssembledVersion(),
                    new LogCoordinates(rollouts, entry.getRolloutPartition(), entry.getRolloutOffset()));
        }
    }

    /** Of one group, what is in no batch and has not left. */
    private static final class Group {
        private final List<Joined> members = new ArrayList<>();
        private long joinedMs;
        private boolean isConsumed = true;
    }

    private final LogConnection connection;
    private final TrainingPast past = new TrainingPast();
    private final Set<String> settled = new HashSet<>();
    private final Map<Long, List<Joined>> batches = new TreeMap<>();
    private final Map<Long, Long> writtenMs = new HashMap<>();
    private final Map<String, Group> groups = new TreeMap<>();
    private final long end;

    /**
     * @param patience how long to wait while nothing arrives
     * @param consumed offset up to which the topology has read a partition of trajectories
     */
    JoinedRollouts(
            LogConnection connection,
            TopicPartition batches,
            Duration patience,
            ToLongFunction<TopicPartition> consumed) {
        this.connection = connection;
        try (TopicScan scan = connection.scan(patience)) {
            ConsistentCut cut = scan.cut(List.of(
                    batches.topic(),
                    connection.topics().outcomes(),
                    connection.topics().deadLetters(),
                    connection.topics().trajectories(),
                    connection.topics().trainingLog()));
            RefusedPlaces refused = RefusedPlaces.read(
                    scan,
                    cut,
                    connection.topics().deadLetters(),
                    Set.of(batches.topic(), connection.topics().trainingLog()));
            end = cut.of(batches).end();
            scan.read(
                    connection.topics().trainingLog(),
                    cut,
                    record -> decoded(connection, record, TrainingStep.class)
                            .filter(step ->
                                    !refused.has(record) && connection.run().owns(step.getRunId(), step.getEpoch()))
                            .ifPresent(past::step));
            scan.read(
                    batches.topic(),
                    cut,
                    record -> decoded(connection, record, LearnerBatch.class)
                            .filter(batch ->
                                    !refused.has(record) && connection.run().owns(batch.getRunId(), batch.getEpoch()))
                            .ifPresent(batch -> add(batch, record)));
            scan.read(
                    connection.topics().outcomes(),
                    cut,
                    record -> decoded(connection, record, Outcome.class)
                            .filter(outcome -> connection.run().owns(outcome.getRunId(), outcome.getEpoch()))
                            .ifPresent(outcome -> settled.add(outcome.getRolloutId())));
            scan.read(
                    connection.topics().trajectories(),
                    cut,
                    record -> decoded(connection, record, Trajectory.class)
                            .filter(it -> connection.run().owns(it.getRunId(), it.getEpoch()))
                            .filter(it -> settled.add(it.getRolloutId()))
                            .ifPresent(it -> add(it, record, consumed)));
        }
    }

    /** Empty for what is no such record. */
    static <T extends SpecificRecord> Optional<T> decoded(
            LogConnection connection, ConsumerRecord<byte[], byte[]> record, Class<T> type) {
        try {
            return Optional.ofNullable(AvroSerde.of(type, connection.registry())
                    .deserializer()
                    .deserialize(record.topic(), record.value()));
        } catch (MalformedRecordException e) {
            return Optional.empty(); // a dead letter by the role that reads it
        }
    }

    private void add(LearnerBatch batch, ConsumerRecord<byte[], byte[]> record) {
        batch.getEntries().forEach(entry -> settled.add(entry.getRolloutId()));
        past.batch(batch.getBatchId(), batch.getEntries().size(), record.offset());
        writtenMs.putIfAbsent(batch.getBatchId(), record.timestamp());
        batches.putIfAbsent(
                batch.getBatchId(),
                batch.getEntries().stream()
                        .map(entry ->
                                Joined.of(batch, entry, connection.topics().rollouts()))
                        .toList());
    }

    private void add(
            Trajectory trajectory, ConsumerRecord<byte[], byte[]> record, ToLongFunction<TopicPartition> consumed) {
        Group group = groups.computeIfAbsent(trajectory.getGroupId(), unseen -> new Group());
        group.members.add(Joined.of(trajectory));
        group.joinedMs = Math.max(group.joinedMs, record.timestamp());
        group.isConsumed &=
                record.offset() < consumed.applyAsLong(new TopicPartition(record.topic(), record.partition()));
    }

    /** Rollouts of the largest group that is in no batch; 0 without one. */
    int groupSize() {
        return groups.values().stream()
                .mapToInt(group -> group.members.size())
                .max()
                .orElse(0);
    }

    /** Rollouts of whole groups that the topology has read and that are in no batch. */
    long whole() {
        int size = groupSize();
        return groups.values().stream()
                        .filter(group -> group.isConsumed && group.members.size() == size)
                        .count()
                * size;
    }

    /**
     * Returns the rollouts of batches that are given up. If a batch is on the log and only its trajectories are lost,
     * the batch names them. Otherwise they are estimated from the remaining rollouts that were joined before the next
     * batch: complete groups before others, and among these the ones that were complete first.
     *
     * @param lost their ids, in order, at least one
     */
    List<Joined> of(List<Long> lost) {
        List<Joined> rollouts = new ArrayList<>();
        long unknown = 0;
        for (long batch : lost) {
            List<Joined> known = batches.get(batch);
            if (known == null) {
                unknown++;
            } else {
                rollouts.addAll(withoutThoseOfOthers(known, lost));
            }
        }
        int usual = past.usualRollouts();
        long wanted = unknown > 0 && usual == 0 ? Long.MAX_VALUE : rollouts.size() + usual * unknown;
        long before = writtenMs.getOrDefault(next(lost), Long.MAX_VALUE);
        groups.values().stream()
                .filter(group -> group.joinedMs <= before)
                .sorted(Comparator.<Group>comparingInt(group -> -group.members.size())
                        .thenComparingLong(group -> group.joinedMs))
                .filter(group -> rollouts.size() + group.members.size() <= wanted)
                .forEachOrdered(group -> rollouts.addAll(group.members));
        return rollouts;
    }

    /** Removes rollouts that another batch also has; that batch accounts for them. */
    private List<Joined> withoutThoseOfOthers(List<Joined> members, List<Long> lost) {
        Set<String> ofOthers = new HashSet<>();
        batches.forEach((id, others) -> {
            if (!lost.contains(id)) {
                others.forEach(member -> ofOthers.add(member.rolloutId()));
            }
        });
        return members.stream()
                .filter(member -> !ofOthers.contains(member.rolloutId()))
                .toList();
    }

    /** Returns the offset at which the learner continues when these are given up. */
    long offsetBehind(List<Long> lost) {
        long next = next(lost);
        return next < 0 ? end : Math.max(past.offset(next), past.offsetBehind(lost.get(lost.size() - 1)));
    }

    /** Returns the first batch after them on the log; -1 without one. */
    private long next(List<Long> lost) {
        return past.firstFrom(lost.get(lost.size() - 1) + 1);
    }
}
