package dev.millrace.cli.live;

import dev.millrace.runtime.evaluation.EvaluationText;
import dev.millrace.runtime.live.RunStatus;
import dev.millrace.runtime.report.StepRow;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Puts a {@link RunStatus} into words: a panel for a terminal of any width, or one line for a log. */
final class StatusText {
    private static final int LABEL = 12;
    /** Below this many columns the roles' names are shortened and units left out. */
    private static final int NARROW = 60;

    private StatusText() {}

    /** The panel: one line each for goal, reward, version, the roles, lag and losses; none longer than {@code width}. */
    static List<String> panel(RunStatus status, int width, Glyphs glyphs) {
        boolean narrow = width < NARROW;
        String dot = glyphs.between();
        List<String> lines = new ArrayList<>();
        lines.add("millrace train" + dot + clock(status.elapsedSeconds()) + dot + "run " + status.runId());
        if (!status.phase().isEmpty()) {
            lines.add(label("waiting for", narrow) + status.phase());
        }
        if (!Double.isNaN(status.goal())) {
            String end = String.format(Locale.ROOT, " %.2f of %.2f", orZero(status.rewardMean()), status.goal());
            int bar = Math.max(5, Math.min(40, width - LABEL - end.length() - 2));
            int full = (int) Math.round(bar * Math.max(0, Math.min(1, status.progress())));
            lines.add(label("goal", narrow) + "[" + glyphs.full().repeat(full)
                    + glyphs.empty().repeat(bar - full) + "]" + end);
        }
        lines.add(label("reward", narrow) + number(last(status.rewards())) + "  "
                + spark(status.rewards(), Math.max(0, Math.min(50, width - LABEL - 8)), glyphs));
        if (!status.evaluations().isEmpty()) {
            lines.add(label("held out", narrow) + EvaluationText.newest(status.evaluations()));
        }
        lines.add(label("version", narrow) + status.version() + " after " + status.steps()
                + (status.maxSteps() > 0 ? " of " + status.maxSteps() : "") + " steps"
                + (narrow || status.serving().isEmpty()
                        ? ""
                        : dot + "served by " + roles(status.serving(), String::valueOf, true)));
        lines.addAll(figures(status, narrow, dot));
        lines.add(label("tokens/s", narrow) + roles(status.tokensPerSecond(), StatusText::thousands, narrow));
        lines.add(label("idle", narrow)
                + roles(status.idle(), idle -> String.format(Locale.ROOT, "%.0f%%", 100 * idle), narrow));
        lines.add(label("behind", narrow)
                + roles(status.recordsBehind(), String::valueOf, narrow)
                + (narrow || status.recordsBehind().isEmpty() ? "" : " records"));
        if (!status.unserved().isEmpty()) {
            lines.add(label("unserved", narrow) + roles(status.unserved(), StatusText::seconds, false));
        }
        status.idleStages().forEach(stage -> lines.add(label("no effect", narrow) + stage));
        status.alarms().forEach(alarm -> lines.add(label("alarm", narrow) + alarm));
        if (!status.lost().isEmpty()) {
            lines.add(
                    label("lost", narrow) + roles(status.lost(), String::valueOf, false) + (narrow ? "" : " records"));
        }
        lines.add(narrow ? "Ctrl-C stops" : "Ctrl-C stops; the same --run-dir goes on from the last step");
        return lines.stream().map(line -> cut(line, width, glyphs)).toList();
    }

    private static String cut(String line, int width, Glyphs glyphs) {
        return line.length() <= width ? line : line.substring(0, Math.max(0, width - 1)) + glyphs.cut();
    }

    /** One line for a log. */
    static String line(RunStatus status) {
        if (status.steps() == 0 || !status.phase().isEmpty()) {
            return clock(status.elapsedSeconds()) + (status.steps() == 0 ? "" : "  step " + status.steps())
                    + "  waiting for " + (status.phase().isEmpty() ? "the first step" : status.phase())
                    + alarms(status);
        }
        return String.format(
                Locale.ROOT,
                "%s  step %d  version %d  reward %.3f%s%s  %s  tokens/s %s  behind %s%s%s%s",
                clock(status.elapsedSeconds()),
                status.steps(),
                status.version(),
                last(status.rewards()),
                Double.isNaN(status.goal())
                        ? ""
                        : String.format(Locale.ROOT, " (%.3f of %.2f)", status.rewardMean(), status.goal()),
                status.evaluations().isEmpty() ? "" : "  held out " + EvaluationText.newest(status.evaluations()),
                figures(status),
                roles(status.tokensPerSecond(), StatusText::thousands, false),
                roles(status.recordsBehind(), String::valueOf, false),
                status.unserved().isEmpty()
                        ? ""
                        : "  unserved for " + roles(status.unserved(), StatusText::seconds, false),
                status.lost().isEmpty() ? "" : "  lost " + roles(status.lost(), String::valueOf, false),
                alarms(status));
    }

    /** Staleness at the step and what it did to the batch: raw, and as it was trained on. */
    private static List<String> figures(RunStatus status, boolean narrow, String dot) {
        StepRow step = status.newest();
        if (step == null) {
            return List.of(label("staleness", narrow) + "-");
        }
        List<String> lines = new ArrayList<>();
        if (step.starved()) {
            lines.add(label("starved", narrow) + starved(status));
            return lines;
        }
        lines.add(label("staleness", narrow) + number(step.stalenessMean()) + " mean, " + whole(step.stalenessMax())
                + (narrow ? " max" : " max versions") + dot + "ESS " + number(step.essRatio())
                + (narrow ? "" : " raw, " + number(step.essRatioTruncated()) + " truncated"));
        if (!narrow) {
            lines.add(label("off policy", false) + "second moment " + number(step.secondMoment()) + " raw, "
                    + number(step.secondMomentTrained()) + " trained on" + dot + "KL " + number(step.kl()) + dot
                    + share(step.trainedShare()) + " of the tokens");
        }
        return lines;
    }

    private static String figures(RunStatus status) {
        StepRow step = status.newest();
        return step == null || step.starved()
                ? starved(status)
                : String.format(
                        Locale.ROOT,
                        "staleness %.2f/%s  ESS %s (%s truncated)  trained %s",
                        step.stalenessMean(),
                        whole(step.stalenessMax()),
                        number(step.essRatio()),
                        number(step.essRatioTruncated()),
                        share(step.trainedShare()));
    }

    private static String starved(RunStatus status) {
        return "no token left in " + status.starvedInARow()
                + (status.starvedInARow() == 1 ? " batch" : " batches in a row");
    }

    private static String whole(double value) {
        return Double.isNaN(value) ? "-" : String.valueOf((long) value);
    }

    private static String share(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.0f%%", 100 * value);
    }

    private static String alarms(RunStatus status) {
        return status.alarms().stream().map(alarm -> "  alarm: " + alarm).collect(Collectors.joining());
    }

    private static String label(String text, boolean narrow) {
        int width = narrow ? LABEL - 2 : LABEL;
        return text + " ".repeat(Math.max(1, width - text.length()));
    }

    private static <V> String roles(Map<String, V> values, Function<V, String> format, boolean narrow) {
        return values.isEmpty()
                ? "-"
                : values.entrySet().stream()
                        .map(entry -> (narrow ? shortName(entry.getKey()) : entry.getKey()) + " "
                                + format.apply(entry.getValue()))
                        .collect(Collectors.joining(narrow ? " " : ", "));
    }

    private static String shortName(String role) {
        return role.substring(0, Math.min(4, role.length()));
    }

    private static String seconds(double value) {
        return String.format(Locale.ROOT, "%.0f s", value);
    }

    static String thousands(double value) {
        if (value >= 1e6) {
            return String.format(Locale.ROOT, "%.1fM", value / 1e6);
        }
        return value >= 1000
                ? String.format(Locale.ROOT, "%.1fk", value / 1000)
                : String.format(Locale.ROOT, "%.0f", value);
    }

    /** The values as bars between 0 and 1, the newest at the right end, averaged to fit the width. */
    static String spark(List<Double> values, int width, Glyphs glyphs) {
        if (values.isEmpty() || width == 0) {
            return "";
        }
        int bars = Math.min(width, values.size());
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < bars; i++) {
            int from = (int) ((long) i * values.size() / bars);
            int to = (int) ((long) (i + 1) * values.size() / bars);
            text.append(glyphs.height(values.subList(from, to).stream()
                    .mapToDouble(Double::doubleValue)
                    .average()
                    .orElse(0)));
        }
        return text.toString();
    }

    static String clock(double seconds) {
        long whole = (long) seconds;
        return String.format(Locale.ROOT, "%02d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
    }

    private static String number(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.3f", value);
    }

    private static double last(List<Double> values) {
        return values.isEmpty() ? Double.NaN : values.get(values.size() - 1);
    }

    private static double orZero(double value) {
        return Double.isNaN(value) ? 0 : value;
    }
}
