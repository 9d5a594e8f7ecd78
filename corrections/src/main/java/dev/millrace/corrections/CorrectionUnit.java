package dev.millrace.corrections;

/** Unit of a correction's decision: every token of the unit receives the same weight, or the same verdict. */
public enum CorrectionUnit {
    /** One token by itself; low variance, blind to what came before it. */
    TOKEN,
    /** A token together with every trained token before it in its sequence: how likely its state was. */
    PREFIX,
    /** A run of trained tokens between two context spans: one action of a multi-turn rollout. */
    TURN,
    /** A whole rollout. */
    SEQUENCE,
    /** All rollouts of one prompt. */
    GROUP,
    /** All tokens sampled by one policy version. */
    VERSION,
    /** The whole batch. */
    BATCH
}
