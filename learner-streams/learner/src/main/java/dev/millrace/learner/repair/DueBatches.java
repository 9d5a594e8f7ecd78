package dev.millrace.learner.repair;

import dev.millrace.learner.batch.BatchProgress;
import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.OffsetRange;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.RunTopics;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import org.apache.kafka.common.TopicPartition;

/** Whether the batches that the learner is to train on next are there, and can be trained on. */
final class DueBatches {
    /** A batch and the marker of its transaction, at least. */
    private static final int OFFSETS_OF_A_BATCH = 2;
    /** Batches that may be lost in a row; an id further ahead is no batch of the run, and a list of those between would not end. */
    private static final long MOST_LOST = 100_000;

    private final LogConnection connection;
    private final RunTopics topics;
    private final TrainingPast past;
    private final BatchMembers members;
    private final CommittedOffsets offsets;
    private final WaysOut ways;
    private final Duration patience;
    private final Consumer<Inconsistency> found;

    /**
     * @param patience how long to wait while nothing arrives
     * @param found takes what is inconsistent
     */
    DueBatches(
            LogConnection connection,
            TrainingPast past,
            BatchMembers members,
            CommittedOffsets offsets,
            WaysOut ways,
            Duration patience,
            Consumer<Inconsistency> found) {
        this.connection = connection;
        this.topics = connection.topics();
        this.past = past;
        this.members = members;
        this.offsets = offsets;
        this.ways = ways;
        this.patience = patience;
        this.found = found;
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
            found.accept(new Inconsistency(
                    "step-stray",
                    "batch " + due + " is due, and " + topics.trainingLog() + " has a step on batch " + last
                            + ", more than " + MOST_LOST + " batches ahead: no learner of the run wrote it",
                    ways.newEpoch()));
            return List.of();
        }
        List<Long> lost = LongStream.rangeClosed(due, last).boxed().toList();
        found.accept(new Inconsistency(
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
     * Whether a batch ahead of the due one is none of the run's: it repeats what an earlier batch has, or is further ahead than
     * batches can be lost. Nothing is to be given up for it; the learner refuses it.
     */
    private boolean isStray(long due, long ahead) {
        Optional<String> why = ahead - due > MOST_LOST
                ? Optional.of("it is more than " + MOST_LOST + " batches ahead")
                : members.whyRefused(ahead);
        boolean isPassed = offsets.learner()
                .filter(read -> read.offset() > past.offset(ahead))
                .isPresent();
        why.filter(clause -> !isPassed)
                .ifPresent(clause -> found.accept(new Inconsistency(
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
        found.accept(new Inconsistency(
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
        found.accept(new Inconsistency(
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
