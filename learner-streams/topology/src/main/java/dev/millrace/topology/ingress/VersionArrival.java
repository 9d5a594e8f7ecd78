package dev.millrace.topology.ingress;

/**
 * A version of the policy was published.
 *
 * @param batchId the batch it was made from; -1 for the initial weights
 * @param timestampMs when its record was written, Unix milliseconds
 * @param offset where its record lies
 */
public record VersionArrival(long version, long batchId, long timestampMs, long offset) implements AssemblyArrival {

    @Override
    public int input() {
        return 1;
    }

    /** All of it: the topic is compacted, so its record may be gone one day. */
    @Override
    public long[] facts() {
        return new long[] {version, batchId, timestampMs, offset};
    }

    /** The version that a journal was told of. */
    public static VersionArrival of(long... facts) {
        return new VersionArrival(facts[0], facts[1], facts[2], facts[3]);
    }
}
