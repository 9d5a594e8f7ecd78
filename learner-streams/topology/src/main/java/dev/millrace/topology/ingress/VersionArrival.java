package dev.millrace.topology.ingress;

/**
 * A version of the policy was published.
 *
 * @param batchId the batch it was made from; -1 for the initial weights
 * @param timestampMs when its record was written, Unix milliseconds
 * @param offset where its record lies
 */
public record VersionArrival(long version, long batchId, long timestampMs, long offset) implements AssemblyArrival {
    /** Number of the input that it comes from, {@code policy-versions}. */
    public static final int INPUT = 1;

    @Override
    public int input() {
        return INPUT;
    }

    /** All of it: the topic is compacted, so its record may be gone one day. */
    @Override
    public long[] facts() {
        return new long[] {version, batchId, timestampMs, offset};
    }

    /** What a journal was told of: a version, or by fewer facts the deletion of one. */
    public static AssemblyArrival of(long... facts) {
        return facts.length == 3
                ? new VersionDeletion(facts[0], facts[1], facts[2])
                : new VersionArrival(facts[0], facts[1], facts[2], facts[3]);
    }
}
