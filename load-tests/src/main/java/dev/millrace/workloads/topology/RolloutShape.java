package dev.millrace.workloads.topology;

/**
 * What synthetic rollouts look like.
 *
 * @param from a recorded run, as a folder of {@code millrace train} or of {@code millrace export}, whose group size, lengths,
 *     versions behind and shares take the place of those below; empty for none
 * @param groupSize samples of a prompt, at least 2
 * @param promptTokens length of a prompt, at least 1
 * @param responseTokens length of a response, at least 1, at most 1,000,000
 * @param versionsBehind how many versions before the newest one a rollout was sampled
 * @param engineNoise standard deviation of old minus behavior log-probs, which is what two engines differ by; at least 0
 * @param driftPerVersion standard deviation of proximal minus old log-probs, per version between them; at least 0
 * @param unscoredShare share of the rollouts that never get a score, in [0, 1]
 * @param garbageShare share of the rollouts that are published as bytes that are no record, in [0, 1]
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
    /** Log-probs are kept ready for so many lags. */
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

    /** Groups of 8, prompts of 128 tokens, responses of 512, up to 3 versions behind, nothing fails. */
    public static RolloutShape defaults() {
        return new RolloutShape(
                "", 8, Distribution.fixed(128), Distribution.fixed(512), Distribution.uniform(0, 3), 0.002, 0.02, 0, 0);
    }

    /** The same with responses of exactly so many tokens. */
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

    /** The same with what was counted in a run. */
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
     * What was drawn for one rollout.
     *
     * @param index of the rollout in its run, from 0; samples of a group follow each other
     * @param promptTokens length of the prompt, the same for all samples of a group
     * @param promptAt where the prompt begins in what is kept ready
     * @param responseTokens length of the response
     * @param versionsBehind how far behind the newest version it is sampled
     * @param at where the response begins in what is kept ready
     * @param reward 0 or 1
     * @param fate what becomes of it
     */
    public record RolloutDraw(
            long index,
            int promptTokens,
            int promptAt,
            int responseTokens,
            int versionsBehind,
            int at,
            double reward,
            Fate fate) {

        /** What becomes of a rollout. */
        public enum Fate {
            /** It is published and scored. */
            SCORED,
            /** It is published; its score never comes. */
            UNSCORED,
            /** It is published as bytes that are no record. */
            GARBAGE
        }
    }
}
