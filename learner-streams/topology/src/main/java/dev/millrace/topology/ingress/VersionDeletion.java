package dev.millrace.topology.ingress;

/**
 * The tombstone of a version's manifest.
 *
 * @param timestampMs when its record was written, Unix milliseconds
 * @param offset where its record lies
 */
public record VersionDeletion(long version, long timestampMs, long offset) implements AssemblyArrival {
    @Override
    public int input() {
        return VersionArrival.INPUT;
    }

    /** All of it: the topic is compacted, so its record may be gone one day. */
    @Override
    public long[] facts() {
        return new long[] {version, timestampMs, offset};
    }
}
