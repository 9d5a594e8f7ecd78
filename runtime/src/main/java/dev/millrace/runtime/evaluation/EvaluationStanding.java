package dev.millrace.runtime.evaluation;

import dev.millrace.schemas.VersionEvaluation;
import org.jspecify.annotations.Nullable;

/**
 * Compares the newest evaluation with earlier ones on the same prompts, for alerts, which see only the current version.
 *
 * @param best the one with the highest mean reward, of several the earliest
 * @param sinceBest how many were of later versions
 * @param firstStartLogProb mean log-prob under version 0 of the first one that has it; null where none has
 */
record EvaluationStanding(
        VersionEvaluation best, int sinceBest, @Nullable Double firstStartLogProb) {

    /** Standing of the first evaluation. */
    static EvaluationStanding first(VersionEvaluation evaluation) {
        return new EvaluationStanding(evaluation, 0, evaluation.getStartLogProb());
    }

    /** Adds the evaluation of a later version. */
    EvaluationStanding then(VersionEvaluation next) {
        boolean isBetter = next.getRewardMean() > best.getRewardMean();
        return new EvaluationStanding(
                isBetter ? next : best,
                isBetter ? 0 : sinceBest + 1,
                firstStartLogProb == null ? next.getStartLogProb() : firstStartLogProb);
    }
}
