package dev.millrace.workloads.point;

/** What kept a point from achieving more. */
public enum Limit {
    /** Nothing: it achieved what was offered. */
    LOAD("the load"),
    /** The machine had no processor time left. */
    PROCESSORS("processors"),
    /** Records were published late: the broker, or the way to it, did not take them. */
    PUBLISHING("the broker's intake"),
    /** The learner took batches more slowly than they came, and the topology may be only so far ahead of it. */
    LEARNER("the learner"),
    /** None of these: the topology's threads, waiting for commits included. */
    TOPOLOGY("topology threads and commits");

    private static final double BUSY = 0.9;
    private static final double LATE_MS = 1000;

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
     * @param processorLoad of the whole machine, 0 to 1
     * @param publishDelayP99Ms how late the generators were
     * @param learnerHeldBack whether the topology waited for the learner at the end
     */
    static Limit of(boolean followed, double processorLoad, double publishDelayP99Ms, boolean learnerHeldBack) {
        if (followed) {
            return LOAD;
        }
        if (learnerHeldBack) {
            return LEARNER;
        }
        if (processorLoad >= BUSY) {
            return PROCESSORS;
        }
        return publishDelayP99Ms > LATE_MS ? PUBLISHING : TOPOLOGY;
    }
}
