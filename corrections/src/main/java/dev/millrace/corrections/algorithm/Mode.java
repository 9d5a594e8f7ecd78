package dev.millrace.corrections.algorithm;

/**
 * Which policies an algorithm tells apart, and with that where a step's proximal log-probs come from. Under each of them the
 * stages decide when a batch is formed, and again at the version that the step really starts from.
 */
public enum Mode {
    /**
     * Three policies. Proximal is the step's starting weights: a forward pass over the members that were scored under another
     * version, or over all of them where the objective needs the current log-probs anyway.
     */
    DECOUPLED,
    /**
     * Two policies: the objective takes its ratio to behavior and corrects for everything by itself. Nothing is compared
     * before the update, so no stage that compares is taken, and what would be measured by comparing is absent.
     */
    BYPASS,
    /**
     * A-3PO's: proximal lies between behavior and the step's starting weights in log space, by each token's age. A trust region
     * is then around a policy in between; here it costs the same forward pass.
     */
    INTERPOLATED,
    /**
     * Proximal is as recorded: the scorer's, at the version that was newest when it scored. What a batch ages in a queue after
     * that is in no ratio.
     */
    RECORDED
}
