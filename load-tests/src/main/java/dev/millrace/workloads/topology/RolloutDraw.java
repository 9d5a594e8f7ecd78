package dev.millrace.workloads.topology;

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
