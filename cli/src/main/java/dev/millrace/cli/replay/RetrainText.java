package dev.millrace.cli.replay;

import dev.millrace.cli.audit.Lines;
import dev.millrace.counterfactual.CourseStep;
import dev.millrace.counterfactual.VersionRange;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** What a re-train says to a person. */
final class RetrainText {
    private static final int NAME = 24;

    private RetrainText() {
    }

    static List<String> lines(RetrainRecord found, VersionRange range, double seconds) {
        List<String> lines = new ArrayList<>();
        lines.add(String.format(Locale.ROOT, "learnt again from version %d to %d: %,d steps, %d courses in %.1f s",
            range.from(), range.to(), found.steps().size(), found.names().size(), seconds));
        lines.addAll(Lines.wrapped("", proof(found, range)));
        lines.add(String.format(Locale.ROOT, "%-" + NAME + "s %17s %8s %8s %9s %8s", "", "reward", "mean", "mean", "last KL to", "last"));
        lines.add(String.format(Locale.ROOT, "%-" + NAME + "s %5s %5s %5s %8s %8s %9s %8s", "course", "first", "best", "last", "ESS",
            "|grad|", "recorded", "distance"));
        for (int c = 0; c < found.names().size(); c++) {
            String name = found.names().get(c);
            double[] rewards = found.rewards(c);
            lines.add(String.format(Locale.ROOT, "%-" + NAME + "s %5s %5s %5s %8s %8s %9s %8s",
                name.length() <= NAME ? name : name.substring(0, NAME - 3) + "...",
                reward(rewards.length == 0 ? Double.NaN : rewards[0]), reward(Arrays.stream(rewards).max().orElse(Double.NaN)),
                reward(found.lastReward(c)), number(found.mean(c, CourseStep::essRatio)), number(found.mean(c, CourseStep::gradNorm)),
                number(found.last(c, CourseStep::klToRecorded)), number(found.last(c, CourseStep::distance))));
        }
        for (int c = 0; c < found.names().size(); c++) {
            lines.addAll(Lines.wrapped("  ", found.names().get(c) + ": " + fate(found, c)));
        }
        return lines;
    }

    /** Whether the run's own course is the run. */
    static String proof(RetrainRecord found, VersionRange range) {
        if (found.parted().isEmpty()) {
            return "as recorded: the run's own settings make the weights of all " + range.steps() + " versions again, bit for bit";
        }
        return "not as recorded: under these settings the weights part from the recorded ones at version " + found.parted().getAsLong()
            + ". The run had another configuration (give it with --config), another kind of machine or another number of learner.step.shards;"
            + " what follows is still one learner against another, from the same version over the same batches";
    }

    /** What became of a course, in words. */
    static String fate(RetrainRecord found, int course) {
        if (found.ending(course) != null) {
            return found.ending(course);
        }
        if (found.rewards(course).length == 0) {
            return "not tried in the task";
        }
        return found.collapsedAt(course).isPresent()
            ? "collapsed: from version " + found.collapsedAt(course).getAsLong() + " on its reward stays below half of its best"
            : "did not collapse";
    }

    private static String reward(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.2f", value);
    }

    static String number(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.3g", value);
    }
}
