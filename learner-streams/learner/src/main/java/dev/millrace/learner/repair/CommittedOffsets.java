package dev.millrace.learner.repair;

import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LostOffsets;
import dev.millrace.log.scan.OffsetRange;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/** The committed offsets of the consumer groups of a run's roles, compared with the offsets that the topics hold. */
final class CommittedOffsets {
    private static final long LIMIT_MS = 60_000;

    private final String learnerGroup;
    private final String topologyGroup;
    private final String batches;
    private final Map<String, Map<TopicPartition, OffsetAndMetadata>> byGroup = new TreeMap<>();
    private final Map<TopicPartition, OffsetRange> ranges = new HashMap<>();

    private CommittedOffsets(LogConnection connection) {
        this.learnerGroup = connection.group("learner");
        this.topologyGroup = connection.group("topology");
        this.batches = connection.topics().batches();
    }

    /** @param there topics of the run that exist */
    static CommittedOffsets read(LogConnection connection, Set<String> there) {
        CommittedOffsets found = new CommittedOffsets(connection);
        try (Admin admin = Admin.create(connection.as("repair").admin())) {
            for (String role : LostOffsets.ROLES) {
                found.add(admin, connection.group(role), there);
            }
            found.add(admin, found.learnerGroup, there);
            Set<TopicPartition> partitions = new HashSet<>();
            found.byGroup.values().forEach(offsets -> partitions.addAll(offsets.keySet()));
            found.range(admin, partitions);
        }
        return found;
    }

    private void add(Admin admin, String group, Set<String> there) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        answer(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
                .forEach((partition, offset) -> {
                    if (offset != null && there.contains(partition.topic())) {
                        offsets.put(partition, offset);
                    }
                });
        if (!offsets.isEmpty()) {
            byGroup.put(group, offsets);
        }
    }

    private void range(Admin admin, Set<TopicPartition> partitions) {
        Map<TopicPartition, OffsetSpec> first = new HashMap<>();
        Map<TopicPartition, OffsetSpec> last = new HashMap<>();
        partitions.forEach(partition -> {
            first.put(partition, OffsetSpec.earliest());
            last.put(partition, OffsetSpec.latest());
        });
        var begins = answer(admin.listOffsets(first).all());
        var ends = answer(admin.listOffsets(last).all());
        begins.forEach((partition, begin) -> ranges.put(
                partition,
                new OffsetRange(
                        begin.offset(),
                        Math.max(
                                begin.offset(),
                                Objects.requireNonNull(ends.get(partition)).offset()))));
    }

    static <T> T answer(KafkaFuture<T> asked) {
        try {
            return asked.get(LIMIT_MS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
            throw new RepairException(
                    "the cluster does not read or write committed offsets: " + cause.getMessage(), cause);
        } catch (TimeoutException e) {
            throw new RepairException(
                    "the cluster did not answer about committed offsets within " + LIMIT_MS + " ms", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RepairException("interrupted while asking for committed offsets", e);
        }
    }

    Optional<OffsetAndMetadata> learner() {
        return batches().map(partition -> at(learnerGroup, partition));
    }

    /** The partition of the batches that the learner has committed; empty if it has committed nothing yet. */
    Optional<TopicPartition> batches() {
        return byGroup.getOrDefault(learnerGroup, Map.of()).keySet().stream()
                .filter(partition -> partition.topic().equals(batches))
                .findFirst();
    }

    /** The offsets of the batches that the learner had not read and that were deleted; empty if there are none. */
    Optional<OffsetRange> deletedUnread() {
        return batches().flatMap(partition -> {
            long unread = at(learnerGroup, partition).offset();
            long kept = Objects.requireNonNull(ranges.get(partition)).begin();
            return kept > unread ? Optional.of(new OffsetRange(unread, kept)) : Optional.empty();
        });
    }

    /** Up to which offset the topology has read a partition; 0 where it has committed nothing. */
    long topology(TopicPartition partition) {
        OffsetAndMetadata read = byGroup.getOrDefault(topologyGroup, Map.of()).get(partition);
        return read == null ? 0 : read.offset();
    }

    private OffsetAndMetadata at(String group, TopicPartition partition) {
        return Objects.requireNonNull(Objects.requireNonNull(byGroup.get(group)).get(partition));
    }

    long committed(String group, TopicPartition partition) {
        return at(group, partition).offset();
    }

    String range(TopicPartition partition) {
        OffsetRange range = Objects.requireNonNull(ranges.get(partition));
        return "offsets " + range.begin() + " to " + range.end();
    }

    /**
     * By group: what lies outside, as it should be.
     *
     * @param hasLost whether batches are to be given up, which moves the learner's offset
     */
    Map<String, Map<TopicPartition, OffsetAndMetadata>> outside(boolean hasLost) {
        Map<String, Map<TopicPartition, OffsetAndMetadata>> outside = new TreeMap<>();
        byGroup.forEach((group, offsets) -> offsets.forEach((partition, offset) -> {
            OffsetRange range = Objects.requireNonNull(ranges.get(partition));
            long inside = Math.min(Math.max(offset.offset(), range.begin()), range.end());
            boolean isMovedAnyway = hasLost && group.equals(learnerGroup);
            if (inside != offset.offset() && !isMovedAnyway) {
                outside.computeIfAbsent(group, unseen -> new HashMap<>())
                        .put(partition, new OffsetAndMetadata(inside, offset.leaderEpoch(), offset.metadata()));
            }
        }));
        return outside;
    }
}
