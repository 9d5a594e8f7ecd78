package dev.millrace.topology.ingress;

/**
 * A batch without a remaining token was consumed: the learner made no version of it.
 *
 * @param batchId the batch
 * @param version that stayed
 * @param timestampMs when its record was written, Unix milliseconds
 * @param offset where its record lies
 */
public record StarvedArrival(long batchId, long version, long timestampMs, long offset) implements AssemblyArrival {
    /** Number of the input that it comes from, the training log. */
    public static final int INPUT = 2;

    @Override
    public int input() {
        return INPUT;
    }

    /** All of it: the training log may be deleted before it is replayed. */
    @Override
    public long[] facts() {
        return new long[] {batchId, version, timestampMs, offset};
    }

    /** The starved batch that a journal was told of. */
    public static StarvedArrival of(long... facts) {
        return new StarvedArrival(facts[0], facts[1], facts[2], facts[3]);
    }
}
