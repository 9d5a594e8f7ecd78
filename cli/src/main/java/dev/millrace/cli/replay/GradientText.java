package dev.millrace.cli.replay;

import static dev.millrace.cli.replay.RetrainText.count;
import static dev.millrace.cli.replay.RetrainText.number;

import dev.millrace.cli.audit.Lines;
import dev.millrace.replay.retrain.GradientStep;
import dev.millrace.replay.retrain.VariantGradient;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** What counterfactual gradients say to a person. */
final class GradientText {
    private static final int NAME = 24;

    private GradientText() {}

    static List<String> lines(GradientRecord found, double seconds) {
        List<String> lines = new ArrayList<>();
        lines.add(String.format(
                Locale.ROOT,
                "gradients of %s, %s in %.1f s",
                count(found.steps().size(), "step"),
                count(found.names().size(), "course"),
                seconds));
        lines.addAll(Lines.wrapped("", reference(found)));
        lines.add(String.format(
                Locale.ROOT,
                "%-" + NAME + "s %8s %8s %8s %8s %8s %8s",
                "means over steps",
                "cosine",
                "cosine",
                "SGA",
                "norm",
                "noise",
                "ESS"));
        lines.add(String.format(
                Locale.ROOT,
                "%-" + NAME + "s %8s %8s %8s %8s %8s %8s",
                "course",
                "on-pol.",
                "update",
                "progress",
                "",
                "/ norm^2",
                ""));
        for (int c = 0; c < found.names().size(); c++) {
            String name = found.names().get(c);
            double power = found.mean(c, gradient -> gradient.norm() * gradient.norm());
            lines.add(String.format(
                    Locale.ROOT,
                    "%-" + NAME + "s %8s %8s %8s %8s %8s %8s",
                    name.length() <= NAME ? name : name.substring(0, NAME - 3) + "...",
                    number(found.mean(c, VariantGradient::cosineToReference)),
                    number(found.mean(c, VariantGradient::cosineToUpdate)),
                    number(found.mean(c, VariantGradient::sgaProgress)),
                    number(found.mean(c, VariantGradient::norm)),
                    power > 0 ? number(found.mean(c, VariantGradient::noise) / power) : "-",
                    number(found.mean(c, VariantGradient::essRatio))));
        }
        return lines;
    }

    /** What the on-policy gradient is made of. */
    static String reference(GradientRecord found) {
        long known = found.steps().stream()
                .filter(step -> step.reference().isPresent())
                .count();
        if (known == 0) {
            return "without an on-policy gradient to hold them against, since nothing was sampled";
        }
        GradientStep first = found.steps().stream()
                .filter(step -> step.reference().isPresent())
                .findFirst()
                .orElseThrow();
        long noisy = found.steps().stream()
                .filter(step -> step.reference().map(of -> !of.isSomething()).orElse(false))
                .count();
        return "the on-policy gradient is that of " + first.reference().get().sequences()
                + " sequences sampled afresh at each step's weights"
                + (noisy == 0
                        ? ""
                        : "; at " + noisy + " of " + known
                                + " steps it is nothing but noise, or nothing, and progress is left out there");
    }
}
