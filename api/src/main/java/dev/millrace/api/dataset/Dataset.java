package dev.millrace.api.dataset;

/** Rows in a fixed order. Immutable and thread-safe. */
public interface Dataset {

    /** Rows, at least one. */
    int size();

    /** The row of an index from 0 to {@code size() - 1}. */
    DataRow row(int index);

    /** Position of a row for messages, such as {@code prompts.jsonl line 7}. */
    String place(int index);

    /** Lower-case hex sha-256 of all rows; equal hashes have equal rows. A run continues only with the rows it began with. */
    String hash();
}
