package dev.millrace.generator.sampling;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.EpochBeginning;
import dev.millrace.schemas.run.EpochLineage;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads and checks this generator's prompts, hands out their samples, and knows which offsets may be committed.
 *
 * <p>Reads ahead by about one filling of the slots, then pauses. Uncommitted prompts of a revoked partition are
 * sampled by the next owner. Confined to the sampling thread, except {@link #wakeup()}.
 */
public final class PromptSource implements AutoCloseable {
    private static final int MAX_PROMPTS_PER_POLL = 64;
    private static final int SESSION_TIMEOUT_MS = 6_000;
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);
    private static final Duration CONFIRM_LIMIT = Duration.ofSeconds(2);

    /** What the group says of this one. */
    public enum Membership {
        /** The caller relies on it: the next owner begins after this moment. */
        CONFIRMED,
        /** It says nothing now; ask again after the next {@link #poll}. */
        NOT_NOW,
        /** It does not count on it any more. */
        LOST
    }

    /** Who must act before partitions go to another generator, and forget their rollouts after. */
    public interface Moves {
        default void arrived(Set<TopicPartition> partitions) {
            // who keeps nothing of a partition but its prompts waits for these
        }

        /** The partitions are still ours: what is finished can be committed now and not later. */
        void beforeMove();

        void moved(Set<TopicPartition> partitions);
    }

    private final String generatorId;
    private final int readAheadSamples;
    private final PromptCheck check;
    private final Moves moves;
    private final EpochLineage lineage;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Deque<AcceptedPrompt> queue = new ArrayDeque<>();
    private final CommittablePrompts committable = new CommittablePrompts();
    private final Map<TopicPartition, OffsetAndMetadata> committed = new HashMap<>();
    private List<RefusedPrompt> refused = new ArrayList<>();
    private int nextSample; // of the prompt at the head of the queue
    private long queuedSamples;
    private boolean closing;
    private final String topic;
    private boolean isAway;

    /** Subscribes; reads nothing before {@link #poll}. */
    public PromptSource(LogConnection connection, GeneratorConfig config, PromptCheck check, Moves moves) {
        this.generatorId = config.id();
        this.readAheadSamples = config.slots();
        this.check = check;
        this.moves = moves;
        this.lineage = connection.lineage();
        this.consumer = new KafkaConsumer<>(
                connection.consumer(Map.ofEntries(
                        Map.entry("group.id", connection.group("generator")),
                        Map.entry("group.instance.id", connection.scoped("generator-" + config.id())),
                        Map.entry("client.id", "generator-" + config.id()),
                        Map.entry("partition.assignment.strategy", CooperativeStickyAssignor.class.getName()),
                        Map.entry("session.timeout.ms", SESSION_TIMEOUT_MS),
                        Map.entry("heartbeat.interval.ms", SESSION_TIMEOUT_MS / 4),
                        Map.entry("isolation.level", "read_committed"),
                        Map.entry("auto.offset.reset", "earliest"),
                        Map.entry("enable.auto.commit", false),
                        Map.entry("fetch.max.wait.ms", 100), // closing waits for the fetch under way
                        // the sampling thread may wait so long for the log
                        Map.entry(
                                "max.poll.interval.ms",
                                Math.toIntExact(connection.patience().toMillis()) + SESSION_TIMEOUT_MS),
                        Map.entry("max.poll.records", MAX_PROMPTS_PER_POLL))),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
        this.topic = connection.topics().prompts();
        consumer.subscribe(List.of(topic), new Rebalance());
    }

    /**
     * Leaves its prompts to others after committing finished ones, or rejoins. A static member counts as gone after
     * the session timeout, a few seconds.
     */
    public void stayAway(boolean away) {
        if (away == isAway) {
            return;
        }
        isAway = away;
        if (away) {
            consumer.unsubscribe();
        } else {
            consumer.subscribe(List.of(topic), new Rebalance());
        }
    }

    /** Reads what is there, waiting for it at most so long; reads nothing while enough is held. */
    public void poll(Duration limit) {
        if (isAway) {
            LockSupport.parkNanos(limit.toNanos());
            return;
        }
        Set<TopicPartition> assigned = consumer.assignment();
        if (queuedSamples >= readAheadSamples) {
            consumer.pause(assigned);
        } else {
            consumer.resume(assigned);
        }
        try {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(limit)) {
                take(record);
            }
        } catch (WakeupException e) {
            return; // somebody wants the sampling thread to look up; what was to be read is still there
        } catch (FencedInstanceIdException e) {
            throw new IllegalStateException(
                    "fenced by another generator with the id " + generatorId + "; every generator of a run needs an"
                            + " id of its own",
                    e);
        }
    }

    private void take(ConsumerRecord<byte[], byte[]> record) {
        TopicPartition partition = new TopicPartition(record.topic(), record.partition());
        PromptReading reading = check.read(record);
        if (reading instanceof AcceptedPrompt prompt) {
            queue.add(prompt);
            queuedSamples += prompt.request().getSamples();
            committable.read(partition, record.offset(), prompt.request().getSamples(), record.leaderEpoch());
        } else {
            refused.add((RefusedPrompt) reading);
            committable.read(partition, record.offset(), 0, record.leaderEpoch());
        }
    }

    /** Whether no prompt is held that was not handed out. */
    public boolean isEmpty() {
        return queue.isEmpty();
    }

    /** The newest version admission knew when it released the next sample's prompt; there must be one. */
    long nextAdmittedVersion() {
        return queue.element().request().getAdmittedVersion();
    }

    boolean hasBegunGroup() {
        return nextSample > 0;
    }

    /** Begins the next sample; there must be one. */
    RunningSequence next(int vocabSize, long nowMs) {
        AcceptedPrompt prompt = queue.element();
        RunningSequence sequence = new RunningSequence(prompt, nextSample, vocabSize, nowMs);
        nextSample++;
        queuedSamples--;
        if (nextSample == prompt.request().getSamples()) {
            queue.remove();
            nextSample = 0;
        }
        return sequence;
    }

    /** Takes the next prompt with all of its samples, all not begun; there must be one. */
    public AcceptedPrompt takePrompt() {
        AcceptedPrompt prompt = queue.remove();
        queuedSamples -= prompt.request().getSamples();
        return prompt;
    }

    /** Gives up the prompts without a begun sample. */
    void dropNotBegun() {
        AcceptedPrompt begun = nextSample > 0 ? queue.element() : null;
        queue.clear();
        queuedSamples = 0;
        if (begun != null) {
            queue.add(begun);
            queuedSamples = (long) begun.request().getSamples() - nextSample;
        }
    }

    /** End of a partition if all its prompts are finished; empty if some may be in flight or the log does not say. */
    public OptionalLong finishedUpTo(TopicPartition partition) {
        if (isAway
                || !consumer.assignment().contains(partition)
                || queue.stream().anyMatch(prompt -> prompt.partition().equals(partition))) {
            return OptionalLong.empty();
        }
        try {
            long next = consumer.position(partition, CONFIRM_LIMIT);
            Long end = consumer.endOffsets(Set.of(partition), CONFIRM_LIMIT).get(partition);
            return end != null && next >= end ? OptionalLong.of(next) : OptionalLong.empty();
        } catch (TimeoutException | WakeupException e) {
            return OptionalLong.empty();
        }
    }

    public void finished(AcceptedPrompt prompt) {
        committable.finished(prompt.partition(), prompt.offset());
    }

    public boolean hasRefused() {
        return !refused.isEmpty();
    }

    /** Prompts that were refused since the last call. */
    public List<RefusedPrompt> takeRefused() {
        List<RefusedPrompt> taken = refused;
        refused = new ArrayList<>();
        return taken;
    }

    /** Up to where prompts are finished, as far as it was not handed out before; see {@link CommittablePrompts#takeOffsets}. */
    public Map<TopicPartition, OffsetAndMetadata> takeOffsets(Set<TopicPartition> named, String mark) {
        return committable.takeOffsets(named, mark);
    }

    /** True if the offsets handed out with a mark are committed. Partitions that have moved away are ignored. */
    public boolean isCommitted(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<TopicPartition, OffsetAndMetadata> there = consumer.committed(offsets.keySet());
        return offsets.entrySet().stream().anyMatch(handedOut -> {
            OffsetAndMetadata found = there.get(handedOut.getKey());
            return found != null && found.metadata().equals(handedOut.getValue().metadata());
        });
    }

    /** Records committed offsets. A caller of {@link #membership} must report all of them. */
    public void committed(Map<TopicPartition, OffsetAndMetadata> offsets) {
        committed.putAll(offsets);
    }

    /**
     * Checks group membership by repeating a partition's commit, which the group accepts from its current generation
     * only. After that a later owner reads everything written before the call.
     */
    public Membership membership() {
        Set<TopicPartition> assigned = consumer.assignment();
        if (isAway || assigned.isEmpty()) {
            return Membership.LOST;
        }
        TopicPartition any = assigned.iterator().next();
        try {
            consumer.commitSync(Map.of(any, committed.computeIfAbsent(any, this::askCommitted)), CONFIRM_LIMIT);
            return Membership.CONFIRMED;
        } catch (RebalanceInProgressException | TimeoutException | WakeupException e) {
            return Membership.NOT_NOW;
        } catch (CommitFailedException | FencedInstanceIdException e) {
            return Membership.LOST; // the next poll says more
        }
    }

    private OffsetAndMetadata askCommitted(TopicPartition partition) {
        OffsetAndMetadata there =
                consumer.committed(Set.of(partition), CONFIRM_LIMIT).get(partition);
        return there != null
                ? there
                : new OffsetAndMetadata(Objects.requireNonNull( // where it would begin anyway
                        consumer.beginningOffsets(Set.of(partition), CONFIRM_LIMIT)
                                .get(partition)));
    }

    /** Who this is in the group, to commit offsets with. */
    public ConsumerGroupMetadata groupMetadata() {
        return consumer.groupMetadata();
    }

    /** Makes refused prompts and offsets due again that were handed out and could not be committed. */
    public void requeue(List<RefusedPrompt> notWritten, Set<TopicPartition> notCommitted) {
        refused.addAll(0, notWritten);
        committable.requeue(notCommitted);
    }

    private void forget(Set<TopicPartition> gone) {
        if (!queue.isEmpty() && gone.contains(queue.element().partition())) {
            nextSample = 0;
        }
        queue.removeIf(prompt -> gone.contains(prompt.partition()));
        refused.removeIf(prompt -> gone.contains(
                new TopicPartition(prompt.record().topic(), prompt.record().partition())));
        queuedSamples = queue.stream()
                        .mapToLong(prompt -> prompt.request().getSamples())
                        .sum()
                - nextSample;
        committable.forget(gone);
        committed.keySet().removeAll(gone);
    }

    /** Makes a waiting {@link #poll} return. Thread-safe. */
    public void wakeup() {
        consumer.wakeup();
    }

    @Override
    public void close() {
        closing = true; // what is finished was committed already, or shall not be
        consumer.close(
                CloseOptions.timeout(CLOSE_LIMIT).withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
    }

    private final class Rebalance implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            EpochBeginning.seek(consumer, partitions, lineage); // else the consumer begins at what is committed
            moves.arrived(Set.copyOf(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty() && !closing) {
                moves.beforeMove();
                onPartitionsLost(partitions);
            }
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            if (!closing) {
                Set<TopicPartition> gone = Set.copyOf(partitions);
                moves.moved(gone); // first: it may put something back
                forget(gone);
            }
        }
    }

    /**
     * Tracks finished prompts. A partition's offset advances only past prompts whose predecessors are all finished.
     *
     * <p>So a killed generator loses no prompt. The next owner samples finished prompts behind an unfinished one
     * again, under the same rollout ids.
     */
    static final class CommittablePrompts {

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
         * @param leaderEpoch of its write, if known. It is committed too, so that a reader detects from where a truncated log was
         *     written again
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
         * Returns committable offsets that were not handed out before, by partition.
         *
         * @param named partitions whose offset is wanted even if unchanged
         * @param mark kept with each offset, to detect whether they were committed
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
            return partitions.values().stream()
                    .mapToInt(of -> of.byOffset.size())
                    .sum();
        }

        void forget(Set<TopicPartition> gone) {
            partitions.keySet().removeAll(gone);
        }
    }
}
