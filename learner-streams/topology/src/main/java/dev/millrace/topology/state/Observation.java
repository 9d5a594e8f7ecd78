package dev.millrace.topology.state;

/** Something that a task takes in, as far as its journal has to know it. */
public interface Observation {

    /** Which of the task's inputs it came from, counted from 0; the same for every record of a topic, for ever. */
    int input();

    /** Where it lies in the input's partition. */
    long offset();

    /**
     * All that the task takes from it, where the record may be gone when the journal is read, as on a compacted topic;
     * empty where the record itself will be read again.
     */
    default long[] facts() {
        return new long[0];
    }
}
