package dev.millrace.workloads;

/** What kept a point from achieving more. */
public enum Limit {
    /** Nothing: it achieved what was offered. */
    LOAD("the load"),
    /** The machine had no processor time left. */
    PROCESSORS("processors"),
    /** Records were published late: the broker, or the way to it, did not take them. */
    PUBLISHING("the broker's intake"),
    /** Rollouts left as stale instead of reaching a batch. */
    STALENESS("staleness limit"),
    /** The learner was busy all the time, and the topology may be only so far ahead of it. */
    LEARNER("the learner"),
    /** None of these: the topology's threads, waiting for commits included. */
    TOPOLOGY("topology threads and commits");

    private static final double BUSY = 0.9;
    private static final double LATE_MS = 1000;
    private static final double MOST_STALE = 0.01;

    private final String words;

    Limit(String words) {
        this.words = words;
    }

    /** For people. */
    public String words() {
        return words;
    }

    /**
     * Decides.
     *
     * @param followed whether what was offered was achieved
     * @param staleShare rollouts that left as stale, of these and those in batches, 0 to 1; above 0.01 it is the limit even where the
     *     rest was followed
     * @param learnerBusy share of the time, 0 to 1; 0 where the topology does not wait for a learner
     * @param processorLoad of the whole machine, 0 to 1
     * @param publishDelayP99Ms how late the generators were
     */
    static Limit of(
            boolean followed, double staleShare, double learnerBusy, double processorLoad, double publishDelayP99Ms) {
        if (staleShare > MOST_STALE) {
            return STALENESS;
        }
        if (followed) {
            return LOAD;
        }
        if (learnerBusy >= BUSY) {
            return LEARNER;
        }
        if (processorLoad >= BUSY) {
            return PROCESSORS;
        }
        return publishDelayP99Ms > LATE_MS ? PUBLISHING : TOPOLOGY;
    }
}
