package dev.millrace.corrections.diagnostics;

/** A mistake in reading or answering off-policy drift that the data of a run show. */
public enum Pitfall {
    /** A divergence without a known cause: the engines were not compared at one version. */
    UNCHECKED_AGREEMENT("sampler and learner are apart, and nothing compares the two engines at one version: record old"
            + " log-probs before taking the gap for learning or for age"),
    /** Weights of whole sequences, where most sequences do not count. */
    SEQUENCE_WEIGHTS(
            "whole sequences are weighed although less than half of them count: weigh tokens, or reject first"),
    /** More room for the ratio in place of less drift. */
    WIDENED_CLIP("the clip range was widened while more than a fifth of the tokens were clipped: lower drift or update"
            + " pressure first"),
    /** A surge of length that nothing slows. */
    UNGUARDED_SURGE(
            "answers surge in length and the learning rate is what it was: lower it first, and look at the reward"
                    + " afterwards"),
    /** Averages are in order, but the engines think the opposite about single tokens. */
    AVERAGED_SPIKE(
            "averages are in order, and on single tokens the engines think the opposite of each other: look at the"
                    + " largest difference of the probabilities, not at the mean"),
    /** A rejection that in effect rejects by length. */
    LENGTH_TRAP("long answers are rejected far more often than short ones: judge sequences by means, not by sums");

    private final String sentence;

    Pitfall(String sentence) {
        this.sentence = sentence;
    }

    /** Returns the finding and the way out. */
    public String sentence() {
        return sentence;
    }
}
