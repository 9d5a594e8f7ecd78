package dev.millrace.workloads.topology;

/**
 * Shape of synthetic rollouts. Shares are in [0, 1].
 *
 * @param from folder of a recorded run or export that provides group size, lengths, versions behind and shares; empty
 *     for none
 * @param groupSize at least 2
 * @param promptTokens at least 1
 * @param responseTokens 1 to 1,000,000
 * @param versionsBehind of the sampling version
 * @param engineNoise standard deviation of old minus behavior log-probs, at least 0
 * @param driftPerVersion standard deviation of proximal minus old log-probs per version, at least 0
 * @param unscoredShare rollouts without a score
 * @param garbageShare undecodable records
 */
public record RolloutShape(
        String from,
        int groupSize,
        Distribution promptTokens,
        Distribution responseTokens,
        Distribution versionsBehind,
        double engineNoise,
        double driftPerVersion,
        double unscoredShare,
        double garbageShare) {

    private static final long LONGEST = 1_000_000;
    /** Lags with prepared log-probs. */
    static final int MAX_VERSIONS_BEHIND = 1024;

    public RolloutShape {
        if (groupSize < 2) {
            throw new IllegalArgumentException(
                    "group_size must be at least 2, or there is nothing to compare a sample with: " + groupSize);
        }
        requireLength("prompt_tokens", promptTokens);
        requireLength("response_tokens", responseTokens);
        if (versionsBehind.most() > MAX_VERSIONS_BEHIND) {
            throw new IllegalArgumentException(
                    "versions_behind.most must be at most " + MAX_VERSIONS_BEHIND + ": " + versionsBehind.most());
        }
        requireIn("engine_noise", engineNoise, 10);
        requireIn("drift_per_version", driftPerVersion, 10);
        requireIn("unscored_share", unscoredShare, 1);
        requireIn("garbage_share", garbageShare, 1);
    }

    private static void requireLength(String key, Distribution length) {
        if (length.least() < 1 || length.most() > LONGEST) {
            throw new IllegalArgumentException(key + " must lie between 1 and " + LONGEST + " tokens: least="
                    + length.least() + ", most=" + length.most());
        }
    }

    private static void requireIn(String key, double value, double most) {
        if (!(value >= 0.0 && value <= most)) {
            throw new IllegalArgumentException(key + " must be in [0, " + most + "]: " + value);
        }
    }

    public static RolloutShape defaults() {
        return new RolloutShape(
                "", 8, Distribution.fixed(128), Distribution.fixed(512), Distribution.uniform(0, 3), 0.002, 0.02, 0, 0);
    }

    public RolloutShape withResponseTokens(long tokens) {
        return new RolloutShape(
                from,
                groupSize,
                promptTokens,
                Distribution.fixed(tokens),
                versionsBehind,
                engineNoise,
                driftPerVersion,
                unscoredShare,
                garbageShare);
    }

    public RolloutShape with(RecordedShape recorded) {
        return new RolloutShape(
                from,
                recorded.groupSize(),
                recorded.promptTokens(),
                recorded.responseTokens(),
                recorded.versionsBehind(),
                engineNoise,
                driftPerVersion,
                recorded.unscoredShare(),
                recorded.garbageShare());
    }

    /**
     * Draws of one rollout.
     *
     * @param index in its run; samples of a group are adjacent
     * @param prompt the same for a group
     * @param reward 0 or 1
     */
    public record RolloutDraw(long index, Slice prompt, Slice response, int versionsBehind, double reward, Fate fate) {

        /** @param at offset in the prepared vectors */
        public record Slice(int at, int tokens) {}

        public enum Fate {
            SCORED,
            /** Published without a score. */
            UNSCORED,
            /** Published as undecodable bytes. */
            GARBAGE
        }
    }
}
