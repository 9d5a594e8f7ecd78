package dev.millrace.corrections.diagnostics;

/** The smallest change that answers a cause. */
public enum Fix {
    /** Nothing to do. */
    NONE("keep going"),
    /** For A: no correction can help, the numbers are of other tokens. */
    ALIGN_TOKENS(
            "score the token ids that were sampled, in their own context and mask; do not render and tokenise again"),
    /** For B: no correction can help, the denominators are wrong. */
    ALIGN_SAMPLING(
            "record log-probs of the distribution that was sampled (after temperature and top-p), and score with "
                    + "the same temperature and support"),
    /** First rung: take out what is too far off. */
    REJECT("reject by mean k3 per sequence: preset decoupled_k3_rs"),
    /** Second rung: and weigh what is left. */
    REJECT_AND_WEIGH("reject by mean k3 and weigh the rest per token: preset decoupled_k3_rs_token_tis"),
    /** Third rung: the engines themselves. */
    ALIGN_ENGINES("make the engines agree: a float32 output layer, one precision, batch-invariant kernels, replayed "
            + "expert routing"),
    /** Third rung where the cause is age. */
    LOWER_STALENESS(
            "lower max_staleness, or mask by second moment (M2PO) and scale the step by the effective sample size"),
    /** For E. */
    NORMALIZE_LENGTH(
            "judge sequences by means (seq_mean_k3, seq_mean_k1) and weigh per token, not by sums and products"),
    /** For F, when every rung is taken. */
    SLOW_DOWN("go back to a version before the rise, with a smaller step and a lower max_staleness");

    private final String advice;

    Fix(String advice) {
        this.advice = advice;
    }

    /** What to do, as an instruction. */
    public String advice() {
        return advice;
    }
}
