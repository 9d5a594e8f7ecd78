package dev.millrace.cli.live;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Puts a {@link RunStatus} into words: a panel for a terminal of any width, or one line for a log. */
final class StatusText {
    private static final String SPARKS = "▁▂▃▄▅▆▇█";
    private static final int LABEL = 12;

    private StatusText() {
    }

    /** The panel: one line each for goal, reward, version, the roles, lag and losses; none longer than {@code width}. */
    static List<String> panel(RunStatus status, int width) {
        List<String> lines = new ArrayList<>();
        lines.add("millrace train · run " + status.runId() + " · " + clock(status.elapsedSeconds()));
        if (!status.phase().isEmpty()) {
            lines.add(label("waiting for") + status.phase());
        }
        if (!Double.isNaN(status.goal())) {
            String end = String.format(Locale.ROOT, " %.2f of %.2f", orZero(status.rewardMean()), status.goal());
            int bar = Math.max(5, Math.min(40, width - LABEL - end.length() - 2));
            int full = (int) Math.round(bar * Math.max(0, Math.min(1, status.progress())));
            lines.add(label("goal") + "[" + "█".repeat(full) + "·".repeat(bar - full) + "]" + end);
        }
        lines.add(label("reward") + number(last(status.rewards())) + "  " + spark(status.rewards(), Math.max(0, Math.min(50, width - LABEL - 8))));
        lines.add(label("version") + status.version() + " after " + status.steps()
            + (status.maxSteps() > 0 ? " of " + status.maxSteps() : "") + " steps" + served(status.serving()));
        lines.add(label("staleness") + number(status.stalenessMean()) + " mean, " + status.stalenessMax()
            + " max versions · ESS " + number(status.essRatio()));
        lines.add(label("tokens/s") + roles(status.tokensPerSecond(), StatusText::thousands));
        lines.add(label("idle") + roles(status.idle(), idle -> String.format(Locale.ROOT, "%.0f%%", 100 * idle)));
        lines.add(label("behind") + (status.recordsBehind().isEmpty() ? "-" : roles(status.recordsBehind(), String::valueOf) + " records"));
        if (!status.lost().isEmpty()) {
            lines.add(label("lost") + roles(status.lost(), String::valueOf) + " rollouts");
        }
        lines.add("Ctrl-C stops after the step in progress");
        return lines.stream().map(line -> line.length() > width ? line.substring(0, Math.max(0, width)) : line).toList();
    }

    /** One line for a log. */
    static String line(RunStatus status) {
        if (status.steps() == 0) {
            return clock(status.elapsedSeconds()) + "  " + (status.phase().isEmpty() ? "waiting for the first step" : status.phase());
        }
        return String.format(Locale.ROOT, "%s  step %d  version %d  reward %.3f%s  staleness %.2f/%d  ESS %.3f  tokens/s %s  behind %s%s",
            clock(status.elapsedSeconds()), status.steps(), status.version(), last(status.rewards()),
            Double.isNaN(status.goal()) ? "" : String.format(Locale.ROOT, " (%.3f of %.2f)", status.rewardMean(), status.goal()),
            status.stalenessMean(), status.stalenessMax(), status.essRatio(),
            roles(status.tokensPerSecond(), StatusText::thousands), roles(status.recordsBehind(), String::valueOf),
            status.lost().isEmpty() ? "" : "  lost " + roles(status.lost(), String::valueOf));
    }

    private static String label(String text) {
        return text + " ".repeat(LABEL - text.length());
    }

    private static String served(Map<String, Long> serving) {
        return serving.isEmpty() ? "" : " · served by " + roles(serving, String::valueOf);
    }

    private static <V> String roles(Map<String, V> values, Function<V, String> format) {
        return values.isEmpty() ? "-" : values.entrySet().stream()
            .map(entry -> entry.getKey() + " " + format.apply(entry.getValue())).collect(Collectors.joining(", "));
    }

    static String thousands(double value) {
        if (value >= 1e6) {
            return String.format(Locale.ROOT, "%.1fM", value / 1e6);
        }
        return value >= 1000 ? String.format(Locale.ROOT, "%.1fk", value / 1000) : String.format(Locale.ROOT, "%.0f", value);
    }

    /** The values as bars of eight heights between 0 and 1, the newest at the right end, averaged to fit the width. */
    static String spark(List<Double> values, int width) {
        if (values.isEmpty() || width == 0) {
            return "";
        }
        int bars = Math.min(width, values.size());
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < bars; i++) {
            int from = (int) ((long) i * values.size() / bars);
            int to = (int) ((long) (i + 1) * values.size() / bars);
            double mean = values.subList(from, to).stream().mapToDouble(Double::doubleValue).average().orElse(0);
            text.append(SPARKS.charAt((int) Math.max(0, Math.min(7, Math.floor(mean * 8)))));
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
