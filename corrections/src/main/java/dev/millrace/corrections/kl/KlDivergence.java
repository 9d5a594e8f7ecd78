package dev.millrace.corrections.kl;

/** Which of the two divergences between current and reference policy. */
public enum KlDivergence {
    /** KL(current ‖ reference): punishes doing what the reference would not; what RLHF means by "the KL". */
    REVERSE,
    /** KL(reference ‖ current): punishes no longer doing what the reference would. */
    FORWARD
}
