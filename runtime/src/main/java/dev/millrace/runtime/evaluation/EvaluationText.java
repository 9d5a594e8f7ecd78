package dev.millrace.runtime.evaluation;

import dev.millrace.log.Evaluations;
import dev.millrace.schemas.VersionEvaluation;
import java.util.Locale;

/** Evaluations in words. */
public final class EvaluationText {
    /** An interval over fewer prompts is meaningless. */
    private static final int FEW = 10;

    private EvaluationText() {}

    /** The newest, in a line; there must be one. */
    public static String newest(Evaluations evaluations) {
        VersionEvaluation newest = evaluations.last().orElseThrow();
        return "reward " + reward(newest) + " at version " + newest.getVersion() + startLogProb(evaluations, newest);
    }

    /** First, best and last, in a line; there must be one. */
    public static String summary(Evaluations evaluations) {
        VersionEvaluation first = evaluations.onSamePrompts().get(0);
        VersionEvaluation best = evaluations.best().orElseThrow();
        VersionEvaluation last = evaluations.last().orElseThrow();
        return "reward " + reward(first) + " at version " + first.getVersion() + ", " + reward(best) + " best at "
                + best.getVersion() + ", " + reward(last) + " last at " + last.getVersion()
                + String.format(Locale.ROOT, " (%s, %d responses to each)", prompts(last), last.getSamplesPerPrompt())
                + startLogProb(evaluations, last);
    }

    /** Mean reward, with its interval if there are enough prompts. */
    public static String reward(VersionEvaluation of) {
        Double low = of.getRewardLow();
        Double high = of.getRewardHigh();
        String mean = String.format(Locale.ROOT, "%.3f", of.getRewardMean());
        return low == null || high == null || of.getPrompts().size() < FEW
                ? mean
                : mean + String.format(Locale.ROOT, " [%.3f, %.3f]", low, high);
    }

    /** Returns how many prompts there are, and what the intervals over them are. */
    public static String prompts(VersionEvaluation of) {
        int prompts = of.getPrompts().size();
        return prompts
                + (prompts == 1 ? " prompt" : " prompts")
                + (prompts < FEW ? ": too few for an interval" : ", with the interval of 95 % by Student");
    }

    private static String startLogProb(Evaluations evaluations, VersionEvaluation of) {
        Double logProb = of.getStartLogProb();
        if (logProb == null) {
            return "";
        }
        String said = String.format(Locale.ROOT, "; log-prob of its text under the start %.3f", logProb);
        return evaluations.onSamePrompts().stream()
                .filter(evaluation ->
                        evaluation.getVersion() == 0 && of.getVersion() != 0 && evaluation.getStartLogProb() != null)
                .findFirst()
                .map(start -> said + String.format(Locale.ROOT, " (the start's own %.3f)", start.getStartLogProb()))
                .orElse(said);
    }
}
