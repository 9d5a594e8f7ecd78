package dev.millrace.gateway.engine;

/** What becomes of answers under way when an engine's weights change. */
enum WeightChange {
    /** There are none: those that were begun have been waited for. */
    DRAINED,
    /** They go on, and what they have of keys and values is computed again with the new weights. */
    RECOMPUTE,
    /** They go on with the keys and values that they have. */
    KEEP
}
