package dev.millrace.corrections.diagnostics;

/** Why training is off-policy, most severe first, which is the order in which a diagnosis names them. */
public enum Cause {
    /** A: at one version of the weights, sampler and learner disagree. */
    ENGINE_MISMATCH(
            'A',
            "engine mismatch",
            "precision, kernels or engines differ: sampler and learner disagree at the same weights"),
    /** D: few tokens or sequences decide about the step. */
    VARIANCE_BLOW_UP('D', "importance-weight variance blow-up", "a few weights dominate the step and add noise"),
    /** F: answers surge in length, which comes before a collapse. */
    LENGTH_SURGE('F', "optimizer amplification", "answers surge in length: updates amplify the error of the gradient"),
    /** E: much of the update is clipped away, and more with every step. */
    CLIP_SATURATION(
            'E', "clip saturation", "much of the update is clipped: the step, or the drift within it, is too large"),
    /** B: the learner's own policy has moved since the tokens were sampled. */
    POLICY_STALENESS('B', "policy staleness", "the engines agree at the same weights; the policy moved since sampling"),
    /** C: weights are uneven, and still enough of them count. */
    TOKEN_DRIFT('C', "moderate token drift", "single tokens differ a lot, but most still count"),
    /** None of them. */
    NONE('-', "no meaningful drift", "sampler and learner agree well enough");

    private final char letter;
    private final String title;
    private final String meaning;

    Cause(char letter, String title, String meaning) {
        this.letter = letter;
        this.title = title;
        this.meaning = meaning;
    }

    /** Its letter in the survey's decision tree, A to F, or a dash. */
    public char letter() {
        return letter;
    }

    public String title() {
        return title;
    }

    public String meaning() {
        return meaning;
    }
}
