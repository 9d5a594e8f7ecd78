package dev.millrace.corrections.stage;

/**
 * A stage that turns rewards into advantages, over whole groups and before masks, so that a masked sibling counts for the
 * baseline: {@link StageBatch#advantage} for one per sequence, {@link StageBatch#tokenAdvantage} for one per token.
 */
public interface AdvantageEstimator extends Stage {

    /** Returns the least size of a group; a smaller one fails the batch. */
    default int leastGroup() {
        return 1;
    }
}
