package dev.millrace.cli.replay;

import dev.millrace.cli.audit.Lines;
import dev.millrace.replay.retrain.VariantStep;
import dev.millrace.replay.retrain.VersionInterval;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** What a re-train says to a person. */
final class RetrainText {
    private static final int NAME = 24;

    private RetrainText() {}

    static List<String> lines(RetrainSeeds found, VersionInterval range, double seconds) {
        List<String> lines = new ArrayList<>();
        lines.add(String.format(
                Locale.ROOT,
                "learnt again from version %d to %d: %s, %s%s in %.1f s",
                range.from(),
                range.to(),
                count(found.steps().size(), "step"),
                count(found.names().size(), "course"),
                found.each().size() == 1 ? "" : ", " + found.each().size() + " seeds",
                seconds));
        if (found.live()) {
            lines.addAll(
                    Lines.wrapped(
                            "",
                            "live: every variant samples its own rollouts, of the recorded prompts and as many versions behind"
                                    + " as the recorded ones were"
                                    + (found.each().size() == 1
                                            ? ""
                                            : "; seed 1 has the recorded draws, and KL is its; the other numbers are means over the seeds")));
        }
        lines.addAll(Lines.wrapped("", proof(found, range)));
        lines.add(String.format(
                Locale.ROOT,
                "%-" + NAME + "s %17s %8s %8s %9s %8s",
                "",
                "reward",
                "mean",
                "mean",
                "last KL to",
                "last"));
        lines.add(String.format(
                Locale.ROOT,
                "%-" + NAME + "s %5s %5s %5s %8s %8s %9s %8s",
                "course",
                "first",
                "best",
                "last",
                "ESS",
                "|grad|",
                "recorded",
                "distance"));
        for (int c = 0; c < found.names().size(); c++) {
            lines.add(row(found, c));
        }
        for (int c = 0; c < found.names().size(); c++) {
            lines.addAll(Lines.wrapped("  ", found.names().get(c) + ": " + fate(found, c)));
        }
        return lines;
    }

    private static String row(RetrainSeeds found, int c) {
        String name = found.names().get(c);
        return String.format(
                Locale.ROOT,
                "%-" + NAME + "s %5s %5s %5s %8s %8s %9s %8s",
                name.length() <= NAME ? name : name.substring(0, NAME - 3) + "...",
                reward(found.mean(
                        one -> Arrays.stream(one.rewards(c)).findFirst().orElse(Double.NaN))),
                reward(found.mean(one -> Arrays.stream(one.rewards(c)).max().orElse(Double.NaN))),
                reward(found.mean(one -> one.lastReward(c))),
                number(found.mean(one -> one.mean(c, VariantStep::essRatio))),
                number(found.mean(one -> one.mean(c, VariantStep::gradNorm))),
                number(found.first().last(c, VariantStep::klToRecorded)),
                number(found.mean(one -> one.last(c, VariantStep::distance))));
    }

    /** Whether the run's own variant is the run. */
    static String proof(RetrainSeeds found, VersionInterval range) {
        if (found.first().parted().isEmpty()) {
            return "as recorded: the run's own settings " + (found.live() ? sampledAgain(found.first()) + ", and " : "")
                    + "make the weights of "
                    + (range.steps() == 1 ? "version " + range.to() : "all " + count(range.steps(), "version"))
                    + " again, bit for bit";
        }
        long parted = found.first().parted().getAsLong();
        if (found.live()) {
            return "not as recorded: the run's own settings " + sampledAgain(found.first())
                    + ", and the weights part from the recorded ones at version "
                    + parted
                    + ". Without --live the replay says whether it is the sampling: keys and values that outlived a swap, another kind of machine,"
                    + " or other settings of the generator; what follows is still one variant against another";
        }
        return "not as recorded: under these settings the weights part from the recorded ones at version " + parted
                + ". The run had another configuration (give it with --config), another kind of machine or another number of learner.step.shards;"
                + " what follows is still one learner against another, from the same version over the same batches";
    }

    private static String sampledAgain(RetrainRecord found) {
        return found.sameRollouts() == found.sequences()
                ? String.format(
                        Locale.ROOT, "sample its rollouts again, all %,d of them token for token", found.sequences())
                : String.format(
                        Locale.ROOT,
                        "sample %,d of its %,d rollouts again token for token",
                        found.sameRollouts(),
                        found.sequences());
    }

    /** What became of a variant, in words. */
    static String fate(RetrainSeeds found, int variant) {
        if (found.each().size() == 1) {
            return fate(found.first(), variant);
        }
        if (found.each().stream().allMatch(one -> one.ending(variant) == null && one.rewards(variant).length == 0)) {
            return "not tried in the task";
        }
        long collapsed = found.each().stream()
                .filter(one ->
                        one.ending(variant) == null && one.collapsedAt(variant).isPresent())
                .count();
        long all = found.each().size();
        return "collapsed with "
                + (collapsed == 0 ? "none of " + all : collapsed == all ? "all " + all : collapsed + " of " + all)
                + " seeds; reward at the end "
                + found.each().stream().map(one -> brief(one, variant)).collect(Collectors.joining(", "));
    }

    private static String brief(RetrainRecord one, int variant) {
        if (one.ending(variant) != null) {
            return "- (" + one.ending(variant) + ")";
        }
        return reward(one.lastReward(variant))
                + (one.collapsedAt(variant).isPresent()
                        ? " (from " + one.collapsedAt(variant).getAsLong() + " on)"
                        : "");
    }

    private static String fate(RetrainRecord found, int variant) {
        if (found.ending(variant) != null) {
            return found.ending(variant);
        }
        if (found.rewards(variant).length == 0) {
            return "not tried in the task";
        }
        return found.collapsedAt(variant).isPresent()
                ? "collapsed: from version " + found.collapsedAt(variant).getAsLong()
                        + " on its reward stays below half of its best"
                : "did not collapse";
    }

    private static String reward(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.2f", value);
    }

    /** So many things of a kind, said right where it is one. */
    static String count(long things, String kind) {
        return String.format(Locale.ROOT, things == 1 ? "%,d %s" : "%,d %ss", things, kind);
    }

    static String number(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.3g", value);
    }
}
