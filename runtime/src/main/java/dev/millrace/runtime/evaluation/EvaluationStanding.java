package dev.millrace.runtime.evaluation;

import dev.millrace.schemas.VersionEvaluation;
import org.jspecify.annotations.Nullable;

/**
 * Where the newest of some evaluations on the same prompts stands among them: what alerts ask, which know no version but the one that is
 * shown.
 *
 * @param best the one with the highest mean reward, of several the earliest
 * @param sinceBest how many were of later versions
 * @param firstStartLogProb mean log-prob under version 0 of the first one that has it; null where none has
 */
record EvaluationStanding(
        VersionEvaluation best, int sinceBest, @Nullable Double firstStartLogProb) {

    /** That of one without any before it. */
    static EvaluationStanding first(VersionEvaluation evaluation) {
        return new EvaluationStanding(evaluation, 0, evaluation.getStartLogProb());
    }

    /** With that of a later version behind them. */
    EvaluationStanding then(VersionEvaluation next) {
        boolean isBetter = next.getRewardMean() > best.getRewardMean();
        return new EvaluationStanding(
                isBetter ? next : best,
                isBetter ? 0 : sinceBest + 1,
                firstStartLogProb == null ? next.getStartLogProb() : firstStartLogProb);
    }
}
