package dev.millrace.corrections.stage;

/** What a stage may read of a batch in addition to its layout and its rewards. */
public enum StageInput {
    /** Log-probs by the generator's engine at the version that sampled. */
    BEHAVIOR("behavior log-probs"),
    /** Log-probs by the learner's engine at the version that sampled. */
    OLD("old log-probs"),
    /** Log-probs by the learner's engine at the start of the step, or at the newest version where a batch is formed. */
    PROXIMAL("proximal log-probs"),
    REFERENCE("reference log-probs"),
    TEACHER("teacher log-probs"),
    /** Entropy of the proximal policy at every token, in nats. */
    ENTROPIES("entropies"),
    /** Σ π(v)² of the proximal policy at every token, in (0, 1]. */
    SQUARED_PROBABILITIES("squared probabilities"),
    VALUES("values"),
    VERSIONS("version spans"),
    /** How long before the batch each sequence was finished. */
    AGES("ages"),
    TURNS("turns"),
    TURN_REWARDS("rewards per turn"),
    TOKEN_REWARDS("rewards per token"),
    /** The named parts that a reward is the sum of. */
    REWARD_COMPONENTS("reward components"),
    /** The reward of the greedy answer to each sequence's prompt. */
    GREEDY_REWARDS("rewards of greedy answers"),
    /** The most likely tokens of behavior and of proximal at every token, with their log-probs. */
    DISTRIBUTIONS("distributions"),
    /** Which tokens were forced on the sampler, or not sampled freely. */
    FORCED_TOKENS("forced tokens"),
    /** The norm of each sequence's gradient at the start of the step; only a learner knows it. */
    GRADIENT_NORMS("gradient norms"),
    /** Which sequences have the same prompt, over all batches. */
    PROMPTS("prompts"),
    TASKS("task keys"),
    /** What earlier batches left to compare each sequence's reward with. */
    BASELINES("baselines of earlier batches");

    private final String text;

    StageInput(String text) {
        this.text = text;
    }

    public String text() {
        return text;
    }
}
