package dev.millrace.corrections.diagnostics;

/** A mistake in reading or answering off-policy drift that the data of a run show. */
public enum Pitfall {
    /** A divergence without a known cause: the engines were not compared at one version. */
    UNCHECKED_AGREEMENT("sampler and learner differ, and nothing compares the engines at the same weights: record"
            + " old log-probs before attributing the gap to learning or staleness"),
    SEQUENCE_WEIGHTS(
            "whole sequences are weighted although less than half of them count: weight tokens, or reject first"),
    /** More room for the ratio in place of less drift. */
    WIDENED_CLIP("the clip range was widened while more than a fifth of the tokens were clipped: lower drift or update"
            + " pressure first"),
    UNGUARDED_SURGE(
            "answers surge in length at an unchanged learning rate: lower it first, and check the reward afterwards"),
    AVERAGED_SPIKE("averages are fine, but the engines contradict each other on single tokens: check the largest"
            + " probability difference, not the mean"),
    LENGTH_TRAP("long answers are rejected far more often than short ones: reject sequences by means, not by sums");

    private final String sentence;

    Pitfall(String sentence) {
        this.sentence = sentence;
    }

    /** Returns the finding and the way out. */
    public String sentence() {
        return sentence;
    }
}
