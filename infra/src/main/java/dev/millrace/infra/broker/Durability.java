package dev.millrace.infra.broker;

/** When the broker has on the disk what it has acknowledged, so that a power loss cannot take it. What ends the process only takes nothing. */
public enum Durability {
    /** A version, and what it rests on, before a generator takes it up: see {@link EmbeddedBroker#sync}. The rest as {@link #SYSTEM}. */
    VERSIONS,
    /** Every record before it is acknowledged. */
    ALL,
    /** When the operating system writes it: half a minute later, as a rule. */
    SYSTEM
}
