package dev.millrace.corrections.kl;

/** Whether an estimate is multiplied by the importance weight {@code w = current / behavior}, and whether it flows. */
public enum KlWeighting {
    NONE,
    /** {@code sg[w]}: a constant. */
    DETACHED,
    /** {@code w}: differentiated with the rest. */
    LIVE
}
