package dev.millrace.schemas.rollout;

/** Why a record was refused, from a closed list; {@link #code()} is what stands in the header and in the metric. */
public enum RefusalReason {
    /** The bytes are not a record of the topic's kind. */
    UNREADABLE("unreadable"),
    /** The record belongs to another run. */
    WRONG_RUN("wrong-run"),
    /** The record belongs to another epoch of this run. */
    WRONG_EPOCH("wrong-epoch"),
    /** The record's key is not its group id (or policy id), so it may lie in a partition where nothing will meet it. */
    WRONG_KEY("wrong-key"),
    /** The token ids belong to another vocabulary. */
    WRONG_TOKENIZER("wrong-tokenizer"),
    /** Ids, indexes or sizes that contradict each other or their bounds. */
    IDENTITY("identity"),
    /** A vector has not one element per token, or there are no tokens. */
    LENGTHS("lengths"),
    /** A token id outside the vocabulary. */
    TOKENS("tokens"),
    /** Version spans out of order, with gaps, or of impossible versions. */
    VERSION_SPANS("version-spans"),
    /** Turns out of order or with gaps. */
    TURNS("turns"),
    /** Mask values other than 0 and 1, or a token to be trained on that the policy did not sample. */
    MASK("mask"),
    /** A log-prob that is no log-prob, or one under a distribution that no score can be compared with. */
    LOG_PROBS("log-probs"),
    /** An entropy or a sum of squared probabilities that cannot be. */
    MOMENTS("moments"),
    /** Sampling parameters out of range. */
    SAMPLING("sampling"),
    /** A reward that is not finite. */
    REWARD("reward"),
    /** A vector that the configured corrections need is missing, or there are two of one policy. */
    VECTORS("vectors"),
    /** Another sample of the group was announced with another prompt, group size or ordinal. */
    SIBLINGS("siblings"),
    /** A score that does not fit the rollout it names. */
    MISFIT("misfit"),
    /** Prompt and response do not fit a generator's slot. */
    CAPACITY("capacity"),
    /** The environment is not known, or cannot read its state. */
    ENVIRONMENT("environment"),
    /** A value of a closed list that this release does not know, which a newer one wrote. */
    UNKNOWN_SYMBOL("unknown-symbol"),
    /** A reference that can name no blob. */
    BLOB("blob"),
    /** It asks for what whoever refuses it cannot do, such as to look at images. */
    UNSUPPORTED("unsupported"),
    /** Its generator is in quarantine: too much of what it sent was refused, or its log-probs are not those of the policy. */
    QUARANTINED("quarantined"),
    /** What would have to be written is larger than a record may be. */
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
