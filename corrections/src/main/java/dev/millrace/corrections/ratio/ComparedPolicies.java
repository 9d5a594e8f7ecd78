package dev.millrace.corrections.ratio;

/** Which two policies are compared before an update, when nobody knows the current policy yet. */
public enum ComparedPolicies {
    /** proximal / behavior: engine mismatch and staleness together. */
    ANCHOR(RatioKind.ANCHOR),
    /** old / behavior: engine mismatch alone. */
    ENGINE_MISMATCH(RatioKind.ENGINE_MISMATCH),
    /** proximal / old: staleness alone. */
    STALENESS(RatioKind.STALENESS);

    private final RatioKind kind;

    ComparedPolicies(RatioKind kind) {
        this.kind = kind;
    }

    public RatioKind kind() {
        return kind;
    }
}
