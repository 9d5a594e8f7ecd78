package dev.millrace.infra.broker;

/** When the broker flushes acknowledged records to disk, so that a power loss cannot take them. A killed process loses nothing. */
public enum Durability {
    /** A version, and what it rests on, before a generator takes it up: see {@link EmbeddedBroker#sync}. The rest as {@link #SYSTEM}. */
    VERSIONS,
    /** Every record before it is acknowledged. */
    ALL,
    /** When the operating system writes it: half a minute later, as a rule. */
    SYSTEM
}
