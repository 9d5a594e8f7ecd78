package dev.millrace.corrections.stage;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * What the stages decided about a batch. The arrays are the decision's and must not be written.
 *
 * @param left the layout under the mask that is left
 * @param rewards one per sequence, as the last stage that shapes rewards left them
 * @param advantages one per sequence; where they differ within it, their mean over its own trained tokens
 * @param tokenAdvantages one per packed token; empty where every token of a sequence has the sequence's
 * @param returns what a value function is fitted to, one per packed token; empty where the advantages were not made of values
 * @param weights importance weights, one per packed token; 0 at context
 * @param maskedBy one per sequence: the stage that masked the last of its tokens; null where some are trained on
 * @param outcomes of the stages, in order
 * @param essRatio effective sample size of the raw sequence weights over the number of sequences; empty where there is nothing to weigh
 * @param secondMoment mean squared log ratio of proximal to behavior, before the second-moment mask; empty likewise
 * @param stepScale factor on the learning rate
 */
public record Decision(
        TokenBatch left,
        double[] rewards,
        double[] advantages,
        Optional<float[]> tokenAdvantages,
        Optional<float[]> returns,
        float[] weights,
        @Nullable String[] maskedBy,
        List<StageOutcome> outcomes,
        OptionalDouble essRatio,
        OptionalDouble essRatioTruncated,
        OptionalDouble secondMoment,
        double stepScale) {

    /** Advantages, one per packed token of {@link #left}; 0 at what is not trained. */
    public float[] perToken() {
        float[] spread = new float[left.tokenCount()];
        float[] tokens = tokenAdvantages.orElse(null);
        for (int s = 0; s < left.sequenceCount(); s++) {
            int start = left.start(s);
            int end = left.end(s);
            if (tokens == null) {
                Arrays.fill(spread, start, end, (float) advantages[s]);
            } else {
                System.arraycopy(tokens, start, spread, start, end - start);
            }
            for (int t = start; left.trainedTokens(s) < end - start && t < end; t++) {
                spread[t] = left.isTrained(t) ? spread[t] : 0f;
            }
        }
        return spread;
    }
}
