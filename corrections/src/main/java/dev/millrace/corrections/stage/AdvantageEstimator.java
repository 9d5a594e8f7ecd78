package dev.millrace.corrections.stage;

/**
 * The stage that turns rewards into advantages, over whole groups and before anything is masked: a masked sibling still is a
 * baseline. {@link StageBatch#advantage} for one per sequence, {@link StageBatch#tokenAdvantage} for one per token.
 */
public interface AdvantageEstimator extends Stage {

    /** Returns how many sequences a group must have; a smaller one is refused, and its batch with it. */
    default int leastGroup() {
        return 1;
    }
}
