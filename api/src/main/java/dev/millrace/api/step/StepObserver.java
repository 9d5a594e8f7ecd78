package dev.millrace.api.step;

/**
 * Observes every optimizer step on the learner's thread, before the commit: its time is part of the step's. Extension point;
 * {@code observers: [NAME]} chooses any number for a process with a learner.
 *
 * <p>A crash before the commit discards an observed step; it is then observed again.
 */
@FunctionalInterface
public interface StepObserver {

    /** Called after a step, which is committed when this returns. An exception discards it and stops the learner. */
    void stepCompleted(CompletedStep step);
}
