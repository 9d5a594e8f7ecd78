package dev.millrace.corrections.diagnostics;

/** Why behavior and target disagree, in the order in which the decision tree rules them out. */
public enum Cause {
    /** A: the log-probs are of other tokens: re-tokenised text, another chat template, a mask shifted by one. */
    TOKEN_MISALIGNMENT('A', "the two policies were asked about different tokens or contexts"),
    /** B: the sampler's log-probs are not of the distribution that was sampled, or not of the one that is trained. */
    SAMPLING_MISMATCH('B', "temperature, top-p or logit processing differ between sampling and scoring"),
    /** C: one version of the weights, two engines, different numbers. */
    ENGINE_NUMERICS('C', "precision, kernels or expert routing differ between the engines"),
    /** D: the sampler's weights are old. */
    STALENESS('D', "the policy has moved since the tokens were sampled"),
    /** E: a statistic over whole sequences grows with their length. */
    LENGTH_TRAP('E', "sums over sequences punish length rather than divergence"),
    /** F: the gap grows from step to step: updates feed on tokens whose gradients the gap has made wrong. */
    FEEDBACK('F', "the gap drives the updates that widen it"),
    /** None of them: the gap is small, or small enough for what is in force. */
    NONE('-', "behavior and target agree well enough");

    private final char letter;
    private final String meaning;

    Cause(char letter, String meaning) {
        this.letter = letter;
        this.meaning = meaning;
    }

    /** A to F, or a dash. */
    public char letter() {
        return letter;
    }

    /** What it means, in a clause. */
    public String meaning() {
        return meaning;
    }
}
