package dev.millrace.topology.ingress;

/**
 * A version of the policy was published.
 *
 * @param timestampMs when its record was written, Unix milliseconds
 */
public record VersionArrival(long version, long timestampMs) implements AssemblyArrival {
}
