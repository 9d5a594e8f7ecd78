package dev.millrace.corrections.diagnostics;

/** The smallest change that answers a cause. */
public enum Fix {
    NONE("continue"),
    /** For A where it is so large that the numbers are of other tokens; no correction can help. */
    ALIGN_TOKENS("score the sampled token ids in their own context and mask; do not re-render and re-tokenize"),
    /** For A where ratios are biased; no correction can help, the denominators are wrong. */
    ALIGN_SAMPLING("record log-probs of the sampled distribution (after temperature and top-p), and score with"
            + " the same temperature and support"),
    /** For A: systems first. */
    ALIGN_ENGINES("align the engines before any correction: one precision on both sides, then one degree of"
            + " parallelism, then batch-invariant kernels, and routing replay for a mixture of experts"),
    LOWER_STALENESS(
            "reduce staleness (admission.eta, the staleness bound, more frequent versions), then correct the rest:"
                    + " decoupled_token_is for a mild lag, decoupled_geo_rs_seq_tis for long queues or answers"),
    /** First rung: reject what is too far off. */
    REJECT("reject sequences by the geometric mean of their ratios: preset decoupled_geo_rs with the band 0.99_1.01"),
    /** Second rung: and weigh the remaining tokens. */
    REJECT_AND_WEIGH("reject by the geometric mean, and weight the rest per token: preset decoupled_geo_rs_token_tis"),
    /** For D: outliers go before anything is weighed. */
    MASK_BAND("mask the tokens with a ratio outside a band before weighting: preset decoupled_token_icepop"),
    /** Third rung. */
    MEND_SYSTEMS("fixing the cause beats any correction: fresher data, more frequent versions, or one"
            + " precision and routing in both engines"),
    LOWER_PRESSURE(
            "one epoch and fewer minibatches, half the learning rate; then an objective whose ratio does not grow"
                    + " with length (gspo, gmpo); do not widen the clip range"),
    /** For F. */
    SLOW_DOWN("halve the learning rate now, as the length guard does, and reject by the geometric mean; if"
            + " answers keep growing, check the reward, the stop condition and length bonuses");

    private final String advice;

    Fix(String advice) {
        this.advice = advice;
    }

    public String advice() {
        return advice;
    }
}
