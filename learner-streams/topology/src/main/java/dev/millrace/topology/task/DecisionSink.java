package dev.millrace.topology.task;

/** Takes the records that a task makes, in order. */
public interface DecisionSink {
    void take(TaskOutput decision);
}
