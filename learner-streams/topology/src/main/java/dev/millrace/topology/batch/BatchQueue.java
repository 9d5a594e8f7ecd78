package dev.millrace.topology.batch;

import dev.millrace.topology.batch.BatchConfig.Order;
import dev.millrace.topology.batch.ReadyGroups.Turn;
import dev.millrace.topology.task.Wait;
import java.util.ArrayList;
import java.util.List;

/** Groups between being ready and being batched. Confined to one task. */
final class BatchQueue {
    private final BatchConfig config;
    private final ReadyGroups ready;
    private final SubmissionOrder submission;

    /** @param patienceMs activity after which a request that brings no samples is passed over */
    BatchQueue(BatchConfig config, AssemblyStore store, long patienceMs, boolean isFirstEpoch) {
        this.config = config;
        this.ready = new ReadyGroups(config.order());
        this.submission = new SubmissionOrder(store, patienceMs, isFirstEpoch);
    }

    void add(Group group, Turn turn) {
        if (config.order() == Order.SUBMISSION) {
            submission.add(group, turn);
        } else {
            ready.add(group, turn);
        }
    }

    /** A group has left without a batch. */
    void leave(Group group) {
        if (config.order() == Order.SUBMISSION) {
            submission.leave(group.ordinal());
        }
    }

    /**
     * Lets groups pass whose turn has come.
     *
     * @param nowMs on the task's activity clock
     * @return whether any did, or one is waited for since now
     */
    boolean advance(long nowMs) {
        return submission.pass(nowMs, ready);
    }

    /**
     * The groups of the next batch; none if there is not enough.
     *
     * @param atLeast how many groups to take in any case
     * @param lastChance groups with a token of this version or an older one would be too stale for any later batch
     */
    List<Group> next(int atLeast, long lastChance) {
        return ready.first(config, atLeast, lastChance);
    }

    void remove(List<Group> groups) {
        ready.remove(groups);
    }

    /**
     * What keeps ready groups from being a batch.
     *
     * @param nextBatchId the batch that they would be
     */
    List<Wait> waits(int partition, long nextBatchId) {
        List<Group> all = all();
        if (all.isEmpty()) {
            return List.of();
        }
        long sequences = all.stream().mapToLong(group -> group.members().size()).sum();
        return List.of(new Wait(
                "queue",
                partition,
                nextBatchId,
                "batch " + nextBatchId + " is not cut: " + all.size()
                        + " groups of " + sequences + " sequences are ready, a batch takes "
                        + (config.tokens() > 0
                                ? config.tokens() + " trainable tokens"
                                : config.sequences() + " sequences")
                        + (config.order() == Order.SUBMISSION ? " in the order of submission" : "")
                        + (config.maxOutstanding() > 0
                                ? ", and at most " + config.maxOutstanding() + " batches may wait for the learner"
                                : "")));
    }

    /** Every group, those that wait for their turn included. */
    List<Group> all() {
        List<Group> all = new ArrayList<>(ready.all());
        all.addAll(submission.waiting());
        return all;
    }
}
