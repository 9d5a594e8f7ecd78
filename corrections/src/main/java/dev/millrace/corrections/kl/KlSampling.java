package dev.millrace.corrections.kl;

/** Which policy sampled the tokens the estimate is made from. */
public enum KlSampling {
    /** The policy being differentiated: on-policy, before the first step of an update. */
    CURRENT,
    /** Another one: an older version, or the inference engine. Its log-probs make the importance weights. */
    BEHAVIOR,
    /** The reference policy itself. */
    REFERENCE
}
