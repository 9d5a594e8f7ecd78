package dev.millrace.topology.ingress;

/**
 * A version of the policy was published.
 *
 * @param batchId the batch it was made from; -1 for the initial weights
 * @param timestampMs when its record was written, Unix milliseconds
 */
public record VersionArrival(long version, long batchId, long timestampMs) implements AssemblyArrival {
}
