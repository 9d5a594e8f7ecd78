package dev.millrace.replay.retrain;

import java.util.List;
import java.util.OptionalDouble;

/** Takes what a re-train finds, in order, on the thread that replays. */
public interface RetrainListener {

    /** A step was taken by all variants. */
    void step(RetrainedStep step);

    /**
     * The variants' policies were tried.
     *
     * @param version that they stand at
     * @param rewards one for each variant; empty for one that has ended
     */
    void evaluated(long version, List<OptionalDouble> rewards);

    /**
     * A variant ended early, because it would have made numbers that are not finite.
     *
     * @param variant its place
     * @param version that it stood at
     */
    void ended(int variant, long version, String why);
}
