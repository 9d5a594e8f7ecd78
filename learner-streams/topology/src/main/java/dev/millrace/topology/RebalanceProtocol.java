package dev.millrace.topology;

/** How the instances of the topology share the partitions. */
public enum RebalanceProtocol {
    /** The broker's own streams groups where it has them and grants the session timeout; else classic. The log says why. */
    AUTO,
    /** Consumer groups with static members: an instance that comes back under its name takes its partitions at once. */
    CLASSIC,
    /** The broker's own streams groups: the broker assigns. Instances are no static members of them. */
    STREAMS
}
