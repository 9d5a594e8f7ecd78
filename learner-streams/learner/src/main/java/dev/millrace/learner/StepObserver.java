package dev.millrace.learner;

/**
 * Is told of every optimiser step, on the learner's thread, after it was made and before it is committed: what it takes is
 * part of the step's time. A load test lets steps take as long as those of a larger model.
 */
@FunctionalInterface
public interface StepObserver {

    /** The step over this batch is made; it is committed when this returns, and given up where this throws. */
    void stepMade(long batchId);
}
