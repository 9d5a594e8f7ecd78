package dev.millrace.runtime.evaluation;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** Evaluations in words. */
public final class EvaluationText {
    private EvaluationText() {}

    /** The newest, in a line; there must be one. */
    public static String newest(List<EvaluatedVersion> evaluations) {
        EvaluatedVersion newest = evaluations.get(evaluations.size() - 1);
        return String.format(Locale.ROOT, "reward %.3f at version %d", newest.reward(), newest.version())
                + startLogProb(evaluations, newest);
    }

    /** First, best and last, in a line; there must be one. */
    public static String summary(List<EvaluatedVersion> evaluations) {
        EvaluatedVersion first = evaluations.get(0);
        EvaluatedVersion best = best(evaluations);
        EvaluatedVersion last = evaluations.get(evaluations.size() - 1);
        return String.format(
                        Locale.ROOT,
                        "reward %.3f at version %d, %.3f best at %d, %.3f last at %d (%d responses each)",
                        first.reward(),
                        first.version(),
                        best.reward(),
                        best.version(),
                        last.reward(),
                        last.version(),
                        last.responses())
                + startLogProb(evaluations, last);
    }

    /** The one with the highest reward, of several the earliest; there must be one. */
    public static EvaluatedVersion best(List<EvaluatedVersion> evaluations) {
        return evaluations.stream()
                .max(Comparator.comparingDouble(EvaluatedVersion::reward)
                        .thenComparing(EvaluatedVersion::version, Comparator.reverseOrder()))
                .orElseThrow();
    }

    private static String startLogProb(List<EvaluatedVersion> evaluations, EvaluatedVersion of) {
        if (Double.isNaN(of.startLogProb())) {
            return "";
        }
        String said = String.format(Locale.ROOT, "; log-prob of its text under the start %.3f", of.startLogProb());
        return evaluations.stream()
                .filter(evaluation -> evaluation.version() == 0 && of.version() != 0)
                .findFirst()
                .map(start -> said + String.format(Locale.ROOT, " (the start's own %.3f)", start.startLogProb()))
                .orElse(said);
    }
}
