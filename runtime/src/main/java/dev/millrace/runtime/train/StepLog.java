package dev.millrace.runtime.train;

import dev.millrace.audit.ledger.PackedSteps;
import dev.millrace.log.LogConnection;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.stages.IdleStages;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

/**
 * Collects every committed step of the run.
 *
 * <p>{@link #run()} belongs to one thread; {@link #steps()} and {@link #idleStages()} may be read from any.
 */
public final class StepLog implements Runnable {
    private final List<StepRow> steps = new CopyOnWriteArrayList<>();
    private final Consumer<StepRow> told;
    private final StepFollower follower;
    private final PackedSteps packed = new PackedSteps();
    private final IdleStages stages = new IdleStages(IdleStages.STEPS);
    private volatile List<IdleStages.Idle> idleStages = List.of();

    public StepLog(LogConnection connection) {
        this(connection, step -> {});
    }

    /** @param told of every step, on the thread that follows the log */
    public StepLog(LogConnection connection, Consumer<StepRow> told) {
        this.told = told;
        this.follower = new StepFollower(connection, this::add);
    }

    /** The steps so far, oldest first; grows while the log is followed. */
    public List<StepRow> steps() {
        return steps;
    }

    /** Stages that have not acted for {@value IdleStages#STEPS} steps. */
    public List<IdleStages.Idle> idleStages() {
        return idleStages;
    }

    @Override
    public void run() {
        follower.run();
    }

    private void add(TrainingStep step) {
        StepRow row = new StepRow(packed.pack(step));
        told.accept(row);
        steps.add(row);
        stages.add(step);
        idleStages = stages.idle();
    }

    /** Ends {@link #run()}. */
    public void stop() {
        follower.stop();
    }
}
