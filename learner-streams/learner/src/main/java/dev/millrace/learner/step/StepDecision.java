package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.schemas.StageReport;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * What a step trains on: the batch's own decisions, or those made anew at its starting version. Per packed token unless it
 * says otherwise; the arrays are shared and must not be written.
 *
 * @param left         the layout under the mask in force, with groups
 * @param advantages   one per member
 * @param old          log-probs in force
 * @param proximal     log-probs in force
 * @param weights      importance weights in force
 * @param stages       reports of the corrections in force, in order
 * @param essRatio     of the raw sequence weights; NaN where no token is left
 * @param essTruncated of the truncated ones
 * @param secondMoment mean squared log ratio of proximal to behavior, before the second-moment mask; NaN without a token
 * @param stepScale    factor on the learning rate by effective sample size
 * @param maskedBy     one per member: the stage that masked the last of its tokens, or null; null as a whole if the batch's own
 *     decisions stand
 */
record StepDecision(
        TokenBatch left,
        double[] advantages,
        float[] old,
        float[] proximal,
        float[] weights,
        List<StageReport> stages,
        double essRatio,
        double essTruncated,
        double secondMoment,
        double stepScale,
        @Nullable String @Nullable [] maskedBy) {

    /** Whether the step decided by itself. */
    boolean anew() {
        return maskedBy != null;
    }

    /** The same under other advantages, one per member. */
    StepDecision withAdvantages(double[] others) {
        return new StepDecision(
                left,
                others,
                old,
                proximal,
                weights,
                stages,
                essRatio,
                essTruncated,
                secondMoment,
                stepScale,
                maskedBy);
    }

    /** The same under other weights, one per packed token, by a further stage. */
    StepDecision withWeights(float[] others, StageReport by) {
        // where the batch's own decisions stand, its report of the stage does too
        List<StageReport> reports = new ArrayList<>(stages.stream()
                .filter(stage -> !stage.getStage().equals(by.getStage()))
                .toList());
        reports.add(by);
        return new StepDecision(
                left,
                advantages,
                old,
                proximal,
                others,
                List.copyOf(reports),
                essRatio,
                essTruncated,
                secondMoment,
                stepScale,
                maskedBy);
    }

    /** Indices of the members with a trained token, in order. */
    int[] trained() {
        return IntStream.range(0, left.sequenceCount())
                .filter(s -> left.trainedTokens(s) > 0)
                .toArray();
    }

    /** Trained tokens before the second-moment mask; where there is none, after all masks. */
    long tokensBeforeMomentMask() {
        return stages.stream()
                .filter(stage -> stage.getStage().equals("m2po"))
                .mapToLong(StageReport::getTokensSeen)
                .findFirst()
                .orElse(left.trainedTokens());
    }
}
