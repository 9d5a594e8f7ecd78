package dev.millrace.api.step;

/**
 * Is told of every optimiser step, on the learner's thread, after it was made and before it is committed: what it takes is
 * part of the step's time. The door through which step observers come; {@code observers: [NAME]} chooses any number of them for a
 * process that learns.
 *
 * <p>A step that is told of may be given up, by a crash before it is committed, and is then told of again.
 */
@FunctionalInterface
public interface StepObserver {

    /** The step is made; it is committed when this returns, and given up, with the learner, where this throws. */
    void stepMade(MadeStep step);
}
