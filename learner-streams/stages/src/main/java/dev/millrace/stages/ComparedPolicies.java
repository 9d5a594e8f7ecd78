package dev.millrace.stages;

import dev.millrace.corrections.ratio.RatioKind;

/** Which two policies weights and rejections compare. */
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

    /** The ratio as the corrections know it. */
    public RatioKind kind() {
        return kind;
    }
}
