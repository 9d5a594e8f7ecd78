package dev.millrace.topology;

/** How the instances of the topology share the partitions. */
public enum RebalanceProtocol {
    /**
     * The broker's own streams groups where it has them and grants the session timeout, and the instance has no name of its
     * own; else classic. The log says which, and why.
     */
    AUTO,
    /** Consumer groups, in which the instances assign; with {@code instance_id}, as static members. */
    CLASSIC,
    /** Streams groups, in which the broker assigns. */
    STREAMS
}
