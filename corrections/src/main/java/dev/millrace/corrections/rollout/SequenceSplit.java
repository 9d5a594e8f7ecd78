package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RecursiveAction;

/** Work on a batch, cut between sequences into runs of about equal numbers of tokens. */
final class SequenceSplit extends RecursiveAction {
    private static final long serialVersionUID = 1L;

    /** Work on the sequences {@code [from, to)}. */
    interface Work {
        void run(int from, int to);
    }

    private final transient TokenBatch batch;
    private final transient Work work;
    private final int runs;

    SequenceSplit(TokenBatch batch, int runs, Work work) {
        this.batch = batch;
        this.runs = runs;
        this.work = work;
    }

    @Override
    protected void compute() {
        List<RecursiveAction> actions = new ArrayList<>();
        int from = 0;
        for (int run = 1; run <= runs && from < batch.sequenceCount(); run++) {
            int to = run == runs ? batch.sequenceCount() : cut(from, (long) batch.tokenCount() * run / runs);
            if (to > from) {
                actions.add(new Run(work, from, to));
                from = to;
            }
        }
        invokeAll(actions);
    }

    /** The first sequence boundary at or behind {@code token}. */
    private int cut(int from, long token) {
        int s = from;
        while (s < batch.sequenceCount() && batch.end(s) <= token) {
            s++;
        }
        return s;
    }

    private static final class Run extends RecursiveAction {
        private static final long serialVersionUID = 1L;

        private final transient Work work;
        private final int from;
        private final int to;

        Run(Work work, int from, int to) {
            this.work = work;
            this.from = from;
            this.to = to;
        }

        @Override
        protected void compute() {
            work.run(from, to);
        }
    }
}
