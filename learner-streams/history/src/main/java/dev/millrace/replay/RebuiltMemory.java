package dev.millrace.replay;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.stages.BaselineMemory;
import java.util.Optional;

/**
 * Memory of an algorithm under settings, rollouts or rewards that the run did not have: rebuilt from the run's batches
 * in order, starting with the first. Confined to one thread.
 */
public final class RebuiltMemory {
    private final BaselineMemory memory;
    private long next;

    private RebuiltMemory(BaselineMemory memory) {
        this.memory = memory;
    }

    /**
     * Returns the empty memory before the first batch; empty if the advantage has no memory, or the batches recorded
     * its baselines.
     *
     * @param isAsRecorded whether rollouts and rewards are the recorded ones
     */
    public static Optional<RebuiltMemory> of(Algorithm algorithm, Algorithm ofRun, boolean isAsRecorded) {
        return isAsRecorded && algorithm.advantage().equals(ofRun.advantage())
                ? Optional.empty()
                : BaselineMemory.of(algorithm).map(RebuiltMemory::new);
    }

    /**
     * Returns the facts of the next batch with its baselines, then updates the memory with its rewards.
     *
     * @throws ArchiveException if another batch is next
     */
    public StageFacts next(LearnerBatch batch, StageFacts facts) {
        if (batch.getBatchId() != next) {
            throw new ArchiveException("advantage.kind=" + memory.kind()
                    + " carries baselines over batches, which are rebuilt from the run's first batch on, and after "
                    + (next == 0 ? "none" : "batch " + (next - 1)) + " comes batch " + batch.getBatchId()
                    + "; replay the whole run, or choose an advantage without state, such as batch_mean");
        }
        StageFacts known = memory.before(facts);
        memory.after(batch.getBatchId(), facts);
        next++;
        return known;
    }
}
