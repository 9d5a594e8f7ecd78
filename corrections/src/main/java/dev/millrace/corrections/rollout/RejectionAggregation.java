package dev.millrace.corrections.rollout;

/** How the tokens' divergences become the statistic that is compared with a threshold. */
public enum RejectionAggregation {
    /** Not at all: each token is judged by itself. */
    TOKEN,
    /** Sum over the trained tokens of a sequence; grows with the length, so long sequences are rejected first. */
    SUM,
    /** Mean over the trained tokens of a sequence; does not depend on the length. */
    MEAN,
    /** Largest of the trained tokens of a sequence; one bad token rejects the sequence. */
    MAX
}
