package dev.millrace.corrections.ratio;

/** Which of the four policies are kept apart. */
public enum RatioMode {
    /** All of them: a correction for the engines, one for staleness, and a trust region around proximal. */
    DECOUPLED,
    /** old := behavior and proximal := behavior: mismatch and staleness are 1, the trust region is the full ratio. */
    BYPASS,
    /** old := behavior, proximal interpolated between behavior and current by staleness (A-3PO): no forward pass. */
    INTERPOLATED
}
