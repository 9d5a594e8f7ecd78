package dev.millrace.schemas.rollout;

/** Why a record was refused, from a closed list; {@link #code()} is used in the header and in the metric. */
public enum RefusalReason {
    /** The bytes are not a record of the topic's schema. */
    UNREADABLE("unreadable"),
    /** Another run's record. */
    WRONG_RUN("wrong-run"),
    /** Another epoch's record. */
    WRONG_EPOCH("wrong-epoch"),
    /** The key is not the group id (or policy id). */
    WRONG_KEY("wrong-key"),
    /** Token ids of another vocabulary. */
    WRONG_TOKENIZER("wrong-tokenizer"),
    /** Contradictory ids, indexes or sizes. */
    IDENTITY("identity"),
    /** A vector without one element per token, or no tokens. */
    LENGTHS("lengths"),
    /** Token id outside the vocabulary. */
    TOKENS("tokens"),
    /** Version spans out of order, with gaps or impossible versions. */
    VERSION_SPANS("version-spans"),
    /** Turns out of order or with gaps. */
    TURNS("turns"),
    /** Mask values other than 0 and 1, or trained tokens that the policy did not sample. */
    MASK("mask"),
    /** Invalid log-probs, or an incomparable distribution. */
    LOG_PROBS("log-probs"),
    /** Impossible entropy or sum of squared probabilities. */
    MOMENTS("moments"),
    /** Sampling parameters out of range. */
    SAMPLING("sampling"),
    /** Reward not finite. */
    REWARD("reward"),
    /** A required vector is missing, or a policy has two. */
    VECTORS("vectors"),
    /** Prompt, group size or ordinal differ from the group's other samples. */
    SIBLINGS("siblings"),
    /** The score does not fit its rollout. */
    MISFIT("misfit"),
    /** Prompt and response exceed the generator's capacity. */
    CAPACITY("capacity"),
    /** Unknown environment, or unreadable state. */
    ENVIRONMENT("environment"),
    /** An enum value of a newer release. */
    UNKNOWN_SYMBOL("unknown-symbol"),
    /** Invalid blob reference. */
    BLOB("blob"),
    /** A feature that the reader lacks, such as images. */
    UNSUPPORTED("unsupported"),
    /** Its generator is in quarantine. */
    QUARANTINED("quarantined"),
    /** The resulting record would exceed the size limit. */
    TOO_LARGE("too-large");

    private final String code;

    RefusalReason(String code) {
        this.code = code;
    }

    /** Lower case with dashes. */
    public String code() {
        return code;
    }
}
