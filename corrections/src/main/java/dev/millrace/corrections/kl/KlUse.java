package dev.millrace.corrections.kl;

/** What the estimate is for. */
public enum KlUse {
    /** A number to report or to steer by. */
    VALUE,
    /** A term of the loss: its gradient is what counts. */
    LOSS,
    /** A penalty subtracted from the reward or advantage of each token; never differentiated. */
    REWARD
}
