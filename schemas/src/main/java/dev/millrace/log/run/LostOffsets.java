package dev.millrace.log.run;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * Whether a consumer group has lost its committed offsets. A role commits them in the transaction of its records, so a group without
 * any, whose role has written records in this epoch, has lost them. A cluster deletes the offsets of a group without members after
 * {@code offsets.retention.minutes}, and those of a topic with the topic; an import brings none. The role would read everything again.
 *
 * <p>The learner and admission are not concerned: their places follow from the training log and from the table of admission.
 */
public final class LostOffsets {
    /** Roles whose places only their groups' offsets tell. */
    public static final List<String> ROLES = List.of("generator", "scorer", "reference", "teacher", "topology");

    private final LogConnection connection;
    private final String role;
    private final String input;
    private final String output;
    private final Predicate<ConsumerRecord<byte[], byte[]>> isWork;

    private LostOffsets(LogConnection connection, String role) {
        RunTopics topics = connection.topics();
        this.connection = connection;
        this.role = role;
        input = role.equals("generator") ? topics.prompts() : topics.rollouts();
        output = switch (role) {
            case "generator" -> topics.rollouts();
            case "scorer" -> topics.scores();
            case "reference" -> topics.referenceScores();
            case "teacher" -> topics.teacherScores();
            case "topology" -> topics.trajectories();
            default -> throw new IllegalArgumentException("the position of the " + role + " is not a group's offset");
        };
        isWork = switch (role) {
            case "generator" ->
                isRecord(
                        Rollout.class,
                        // of a request of admission; an imported one has a group of its own
                        it -> owns(it.getRunId(), it.getEpoch())
                                && (it.getGroupId() + "-").startsWith(it.getEpoch() + "-" + it.getOrdinal() + "-"));
            case "topology" -> isRecord(Trajectory.class, it -> owns(it.getRunId(), it.getEpoch()));
            default -> isRecord(Score.class, it -> owns(it.getRunId(), it.getEpoch()));
        };
    }

    private boolean owns(String runId, int epoch) {
        return connection.run().owns(runId, epoch);
    }

    private <T extends SpecificRecord> Predicate<ConsumerRecord<byte[], byte[]>> isRecord(
            Class<T> type, Predicate<T> isOurs) {
        Deserializer<T> deserializer = AvroSerde.of(type, connection.registry()).deserializer();
        return record -> {
            try {
                T value = deserializer.deserialize(record.topic(), record.value());
                return value != null && isOurs.test(value);
            } catch (MalformedRecordException e) {
                return false;
            }
        };
    }

    /**
     * Looks for it; where the group has offsets, one question to the cluster.
     *
     * @param role one of {@link #ROLES}, whose topics exist
     * @return what is lost, as a clause; empty if nothing is
     */
    public static Optional<String> of(LogConnection connection, String role) {
        return new LostOffsets(connection, role).find();
    }

    /**
     * As {@link #of(LogConnection, String)}, of a run that may have lost topics.
     *
     * @param there topics of the run that exist; without those of the role there is nothing to lose
     */
    public static Optional<String> of(LogConnection connection, String role, Set<String> there) {
        LostOffsets offsets = new LostOffsets(connection, role);
        return there.contains(offsets.input) && there.contains(offsets.output) ? offsets.find() : Optional.empty();
    }

    /**
     * Refuses to start a role whose group has lost its offsets.
     *
     * @throws LogSetupException naming the group and the way out
     */
    public static void requireNone(LogConnection connection, String role) {
        of(connection, role).ifPresent(lost -> {
            throw new LogSetupException("cannot start the " + role + ", which would repeat all of its work: " + lost
                    + "; " + connection.command("repair --do new-epoch") + " continues from the newest version");
        });
    }

    private Optional<String> find() {
        String group = connection.group(role);
        try (LogReader log = new LogReader(connection.as("lost-offsets"), Map.of("group.id", group))) {
            // asked again: another instance may have committed its first records in between
            return hasOffsets(log) || !hasWork(log) || hasOffsets(log)
                    ? Optional.empty()
                    : Optional.of(
                            "consumer group " + group + " has no committed offsets of " + input + ", and " + output
                                    + " has records of the " + role
                                    + "; a cluster deletes the offsets of a group that has had no"
                                    + " member for offsets.retention.minutes (7 days by default), and those of a deleted topic");
        }
    }

    private boolean hasOffsets(LogReader log) {
        return log.consumer().committed(new HashSet<>(log.partitionsOf(input))).values().stream()
                .anyMatch(Objects::nonNull);
    }

    /** Reads until the first; a role that has never run has written nothing. */
    private boolean hasWork(LogReader log) {
        List<TopicPartition> partitions = log.partitionsOf(output);
        Map<TopicPartition, Long> begins = log.consumer().beginningOffsets(partitions);
        Map<TopicPartition, Long> ends = new HashMap<>(log.consumer().endOffsets(partitions));
        log.consumer().assign(partitions);
        partitions.forEach(partition -> {
            long end = Objects.requireNonNull(ends.get(partition));
            long from = Math.max(
                    Objects.requireNonNull(begins.get(partition)),
                    connection.lineage().beginning(partition.topic(), partition.partition()));
            log.consumer().seek(partition, Math.min(from, end));
        });
        boolean[] found = {false};
        boolean isRead = log.readUntil(
                () -> found[0] || log.hasReached(ends),
                ReadLimit.withoutProgress(connection.patience()),
                record -> found[0] |= !found[0] && isWork.test(record));
        if (!isRead) {
            throw new LogSetupException(
                    "cannot tell whether the " + role + " has written records: no record arrived of " + output + " for "
                            + connection.patience().toSeconds() + " s (run.patience_seconds)");
        }
        return found[0];
    }
}
