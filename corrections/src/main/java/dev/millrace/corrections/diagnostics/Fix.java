package dev.millrace.corrections.diagnostics;

/** The smallest change that answers a cause. */
public enum Fix {
    /** Nothing to do. */
    NONE("keep going"),
    /** For A where it is so large that the numbers are of other tokens; no correction can help. */
    ALIGN_TOKENS(
            "score the token ids that were sampled, in their own context and mask; do not render and tokenise again"),
    /** For A where ratios are biased; no correction can help, the denominators are wrong. */
    ALIGN_SAMPLING("record log-probs of the distribution that was sampled (after temperature and top-p), and score with"
            + " the same temperature and support"),
    /** For A: systems first. */
    ALIGN_ENGINES("make the engines agree before anything is corrected: one precision on both sides, then one degree of"
            + " parallelism, then batch-invariant kernels, and replayed routing where experts are routed"),
    /** For B. */
    LOWER_STALENESS(
            "let data be fresher (admission.eta, the bound on staleness, more frequent versions), then correct the rest:"
                    + " decoupled_token_is for a mild lag, decoupled_geo_rs_seq_tis for long queues or answers"),
    /** First rung: reject what is too far off. */
    REJECT("reject sequences by the geometric mean of their ratios: preset decoupled_geo_rs with the band 0.99_1.01"),
    /** Second rung: and weigh the remaining tokens. */
    REJECT_AND_WEIGH("reject by the geometric mean, and weigh the rest per token: preset decoupled_geo_rs_token_tis"),
    /** For D: outliers go before anything is weighed. */
    MASK_BAND(
            "mask the tokens whose ratio is outside of a band before anything is weighed: preset decoupled_token_icepop"),
    /** Third rung. */
    MEND_SYSTEMS(
            "no correction is cheaper than mending what makes the gap: fresher data, more frequent versions, or one"
                    + " precision and routing in both engines"),
    /** For E. */
    LOWER_PRESSURE(
            "one epoch and fewer minibatches, half the learning rate; then an objective whose ratio does not grow"
                    + " with length (gspo, gmpo); do not widen the clip range"),
    /** For F. */
    SLOW_DOWN("halve the learning rate now, which is what the length guard does, and reject by the geometric mean; if"
            + " answers keep growing, look upstream: the reward, how answers end, a bonus for length");

    private final String advice;

    Fix(String advice) {
        this.advice = advice;
    }

    /** What to do, as an instruction. */
    public String advice() {
        return advice;
    }
}
