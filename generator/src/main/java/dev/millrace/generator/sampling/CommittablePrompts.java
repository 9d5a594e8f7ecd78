package dev.millrace.generator.sampling;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Which prompts are finished, and up to where that may be committed: an offset of a partition only when every earlier
 * prompt of the partition is finished.
 *
 * <p>So a generator that dies loses no prompt: whoever takes over reads again from the first unfinished one. Prompts
 * after it that were finished already are then sampled a second time, under the same rollout ids.
 */
final class CommittablePrompts {

    private static final class Entry {
        final long offset;
        int samplesLeft;

        Entry(long offset, int samplesLeft) {
            this.offset = offset;
            this.samplesLeft = samplesLeft;
        }
    }

    private static final class Partition {
        final Deque<Entry> open = new ArrayDeque<>();
        final Map<Long, Entry> byOffset = new HashMap<>();
        long next = -1; // one past the newest prompt that was read
        long handedOut = -1;
        Optional<Integer> leaderEpoch = Optional.empty();
    }

    private final Map<TopicPartition, Partition> partitions = new HashMap<>();

    /**
     * A prompt was read; prompts of a partition come in offset order.
     *
     * @param samples 0 where nothing is to be done for it
     * @param leaderEpoch that it was written in, where it is known. It is committed along: where the log has lost its end and
     *     others have written there, whoever reads on finds out from where
     */
    void read(TopicPartition partition, long offset, int samples, Optional<Integer> leaderEpoch) {
        Partition of = partitions.computeIfAbsent(partition, p -> new Partition());
        of.next = offset + 1;
        of.leaderEpoch = leaderEpoch;
        if (samples > 0) {
            Entry entry = new Entry(offset, samples);
            of.open.add(entry);
            of.byOffset.put(offset, entry);
        }
    }

    /** One sample of a prompt is finished. */
    void finished(TopicPartition partition, long offset) {
        Partition of = partitions.get(partition);
        Entry entry = of == null ? null : of.byOffset.get(offset);
        if (of == null || entry == null) {
            throw new IllegalStateException("no sample of " + partition + "@" + offset + " is open");
        }
        if (--entry.samplesLeft == 0) {
            of.byOffset.remove(offset);
            while (!of.open.isEmpty() && of.open.peek().samplesLeft == 0) {
                of.open.remove();
            }
        }
    }

    /**
     * What may be committed and was not handed out before, by partition.
     *
     * @param named of which the offset is wanted also where it is as before
     * @param mark kept with each offset, by which it is found out whether they were committed
     */
    Map<TopicPartition, OffsetAndMetadata> takeOffsets(Set<TopicPartition> named, String mark) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        partitions.forEach((partition, of) -> {
            long low = of.open.isEmpty() ? of.next : of.open.peek().offset;
            if (low > of.handedOut || named.contains(partition)) {
                of.handedOut = low;
                offsets.put(partition, new OffsetAndMetadata(low, of.leaderEpoch, mark));
            }
        });
        return offsets;
    }

    /** Hands out the offsets of these partitions again, because they could not be committed. */
    void requeue(Set<TopicPartition> notCommitted) {
        for (TopicPartition partition : notCommitted) {
            Partition of = partitions.get(partition);
            if (of != null) {
                of.handedOut = -1;
            }
        }
    }

    /** Prompts that are read and not finished. */
    int openPrompts() {
        return partitions.values().stream().mapToInt(of -> of.byOffset.size()).sum();
    }

    /** Forgets partitions that belong to somebody else now. */
    void forget(Set<TopicPartition> gone) {
        partitions.keySet().removeAll(gone);
    }
}
