package dev.millrace.topology.batch;

import dev.millrace.topology.batch.BatchConfig.Order;
import dev.millrace.topology.batch.ReadyGroups.Turn;
import java.util.ArrayList;
import java.util.List;

/** Groups between being ready and being batched. Confined to one task. */
final class BatchQueue {
    private final BatchConfig config;
    private final ReadyGroups ready;
    private final SubmissionOrder submission;

    /** @param patienceMs activity after which a request that brings no samples is passed over */
    BatchQueue(BatchConfig config, AssemblyStore store, long patienceMs) {
        this.config = config;
        this.ready = new ReadyGroups(config.order());
        this.submission = new SubmissionOrder(store, patienceMs);
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
     */
    List<Group> next(int atLeast) {
        return ready.first(config, atLeast);
    }

    void remove(List<Group> groups) {
        ready.remove(groups);
    }

    /** Every group, those that wait for their turn included. */
    List<Group> all() {
        List<Group> all = new ArrayList<>(ready.all());
        all.addAll(submission.waiting());
        return all;
    }
}
