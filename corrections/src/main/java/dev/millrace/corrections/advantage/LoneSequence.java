package dev.millrace.corrections.advantage;

/** What a sequence without siblings is compared with, where a group baseline does not exist. */
public enum LoneSequence {
    /** With 0: its advantage is its reward, unbiased and noisy. */
    KEEPS_ITS_REWARD,
    /** With itself: its advantage is 0, so it teaches nothing. */
    TEACHES_NOTHING
}
