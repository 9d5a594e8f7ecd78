package dev.millrace.cli.evaluate;

import dev.millrace.log.Evaluations;
import dev.millrace.report.Lines;
import dev.millrace.runtime.evaluation.EvaluationRecords;
import dev.millrace.runtime.evaluation.EvaluationText;
import dev.millrace.schemas.DifficultyLengths;
import dev.millrace.schemas.PassAtKEstimate;
import dev.millrace.schemas.VersionEvaluation;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Evaluations as lines for a terminal. */
final class EvaluationTable {
    private EvaluationTable() {}

    /** Everything of one. */
    static List<String> one(VersionEvaluation of) {
        List<String> lines = new ArrayList<>(Lines.labelled(
                "version",
                say(
                        "%d, weights %s; %d prompts (%.12s), %d responses to each, temperature %s, top_p %s; \u00b1 is 95 %%",
                        of.getVersion(),
                        of.getWeightsSha256(),
                        of.getPrompts().size(),
                        of.getDataSha256(),
                        of.getSamplesPerPrompt(),
                        of.getSampling().getTemperature(),
                        of.getSampling().getTopP())));
        lines.addAll(Lines.labelled("reward", EvaluationText.reward(of)));
        for (PassAtKEstimate estimate : of.getPassAtK()) {
            lines.addAll(Lines.labelled("pass@" + estimate.getK(), pass(estimate)));
        }
        lines.addAll(Lines.labelled("cut off", say("%.1f %% of the responses", 100 * of.getTruncatedShare())));
        lines.addAll(Lines.labelled(
                "lengths",
                of.getDifficulties().stream().map(EvaluationTable::bin).collect(Collectors.joining("; "))));
        Double start = of.getStartLogProb();
        if (start != null) {
            lines.addAll(Lines.labelled("start", say("log-prob of its text under version 0 %.3f nats a token", start)));
        }
        if (of.getFailed() > 0) {
            lines.addAll(Lines.labelled(
                    "left out",
                    say(
                            "%d of %d responses, which could not be judged",
                            of.getFailed(), of.getFailed() + EvaluationRecords.responses(of))));
        }
        return lines;
    }

    private static String pass(PassAtKEstimate estimate) {
        String fit = estimate.getBetaBinomial() == null ? "" : say(", %.3f by a Beta fit", estimate.getBetaBinomial());
        return estimate.getUnbiased() == null
                ? say("extrapolated %.3f at the shares as they are%s", estimate.getBernoulli(), fit)
                : say("%.3f", estimate.getUnbiased()) + interval(estimate.getLow(), estimate.getHigh());
    }

    private static String interval(@Nullable Double low, @Nullable Double high) {
        return low == null || high == null ? "" : say(" (%.3f to %.3f)", low, high);
    }

    private static String bin(DifficultyLengths bin) {
        String which = bin.getTo() == 0
                ? "never solved"
                : bin.getFrom() == 1
                        ? "always solved"
                        : say(
                                bin.getTo() == 1 ? "over %.0f %% solved" : "%.0f to %.0f %% solved",
                                100 * bin.getFrom(),
                                100 * bin.getTo());
        return say(
                "%s, %d prompt%s: %.1f tokens, %.1f %% cut off",
                which,
                bin.getPrompts(),
                bin.getPrompts() == 1 ? "" : "s",
                bin.getTokensMean(),
                100 * bin.getTruncatedShare());
    }

    /** A line for each version, the best marked; there must be one. */
    static List<String> all(Evaluations evaluations) {
        List<String> lines =
                new ArrayList<>(List.of("  version         reward   pass@1   cut off   log-prob under start"));
        long best = evaluations.best().orElseThrow().getVersion();
        for (VersionEvaluation each : evaluations.onSamePrompts()) {
            Double pass = EvaluationRecords.passAt(each, 1).getUnbiased();
            Double start = each.getStartLogProb();
            lines.add(say(
                            "%9d%s %14s %8s %8.1f%% %22s",
                            each.getVersion(),
                            each.getVersion() == best ? "*" : " ",
                            EvaluationText.reward(each),
                            pass == null ? "-" : say("%.3f", pass),
                            100 * each.getTruncatedShare(),
                            start == null ? "-" : say("%.3f", start))
                    .stripTrailing());
        }
        VersionEvaluation last = evaluations.last().orElseThrow();
        lines.addAll(Lines.wrapped(
                "  ",
                say(
                        "* is the best; %d prompts (%.12s), %d responses to each; \u00b1 is 95 %%",
                        last.getPrompts().size(), last.getDataSha256(), last.getSamplesPerPrompt())));
        return lines;
    }

    private static String say(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
