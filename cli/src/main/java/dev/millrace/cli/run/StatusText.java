package dev.millrace.cli.run;

import dev.millrace.cli.run.TonedLine.Tone;
import dev.millrace.log.Alarm;
import dev.millrace.report.Lines;
import dev.millrace.runtime.evaluation.EvaluationText;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Formats a {@link RunStatus}: a panel for a terminal of any width, or one line for a log. */
final class StatusText {
    private static final int LABEL = 10;
    /** Below this many columns omits the table of roles and units. */
    private static final int NARROW = 60;

    private static final int TREND_STEPS = 20;
    private static final int SPARK = 50;
    private static final int ALARM_LINES = 3;

    private StatusText() {}

    /**
     * Lines of the panel, at most {@code width} wide, most important first.
     *
     * @param nowMs Unix milliseconds of the clock that dates steps
     */
    static List<TonedLine> panel(RunStatus status, int width, Glyphs glyphs, long nowMs) {
        boolean narrow = width < NARROW;
        double age = stepAge(status, nowMs);
        List<TonedLine> lines = new ArrayList<>();
        lines.add(title(status, RunState.of(status, age), narrow));
        for (Alarm alarm : status.troubles().alarms()) {
            lines.addAll(labelled("alarm", alarm.text(), Tone.BAD, width));
        }
        if (!status.troubles().unserved().isEmpty()) {
            lines.addAll(
                    labelled("unserved", named(status.troubles().unserved(), StatusText::seconds), Tone.BAD, width));
        }
        if (status.learning().newest() == null) {
            lines.add(label("starting").and(beginnings(status, glyphs)));
        }
        if (!status.phase().isEmpty()) {
            lines.add(label("waiting").and("for " + status.phase()));
        }
        lines.add(reward(status, width, glyphs));
        if (!narrow && !Double.isNaN(status.goal().reward())) {
            lines.add(goal(status, width, glyphs));
        }
        if (!status.learning().evaluations().isEmpty()) {
            lines.addAll(
                    labelled("held out", EvaluationText.newest(status.learning().evaluations()), Tone.PLAIN, width));
        }
        lines.addAll(figures(status, narrow, glyphs));
        if (!narrow) {
            lines.addAll(roles(status));
        }
        status.troubles().idleStages().forEach(stage -> lines.addAll(labelled("no effect", stage, Tone.LOOK, width)));
        if (!status.troubles().lost().isEmpty()) {
            lines.addAll(labelled(
                    "left out", named(status.troubles().lost(), String::valueOf) + " records", Tone.PLAIN, width));
        }
        if (!Double.isNaN(age)) {
            lines.add(label("newest").and("step " + status.learning().steps() + ", " + ago(age)));
        }
        lines.add(TonedLine.of(
                narrow ? "Ctrl-C stops" : "Ctrl-C stops; the same --run-dir continues from the last step", Tone.FAINT));
        return lines.stream().map(line -> line.cut(width, glyphs)).toList();
    }

    /** Seconds since the newest step, or since this invocation began; NaN before the first step. */
    private static double stepAge(RunStatus status, long nowMs) {
        StepRow newest = status.learning().newest();
        return newest == null
                ? Double.NaN
                : Math.max(0, Math.min(status.elapsedSeconds(), (nowMs - newest.finishedAtMs()) / 1e3));
    }

    private static TonedLine title(RunStatus status, RunState state, boolean narrow) {
        String where = "  " + clock(status.elapsedSeconds())
                + (status.learning().steps() == 0
                        ? ""
                        : "  step " + status.learning().steps()
                                + (status.learning().maxSteps() > 0
                                        ? " of " + status.learning().maxSteps()
                                        : "")
                                + (narrow
                                        ? ""
                                        : "  version " + status.learning().version()));
        return narrow
                ? TonedLine.of(state.words, state.tone).and(where)
                : TonedLine.of(status.runId() + "  ", Tone.STRONG)
                        .and(state.words, state.tone)
                        .and(where);
    }

    /** Progress before the first step: completed and next parts. */
    private static String beginnings(RunStatus status, Glyphs glyphs) {
        StringBuilder text = new StringBuilder();
        String next = "";
        for (Map.Entry<String, Boolean> each : begun(status).entrySet()) {
            if (each.getValue()) {
                text.append(each.getKey()).append(' ').append(glyphs.done()).append("  ");
            } else if (next.isEmpty()) {
                next = each.getKey();
            }
        }
        return text + (next.isEmpty() ? "first step" : next) + " ...";
    }

    private static Map<String, Boolean> begun(RunStatus status) {
        Map<String, Boolean> begun = new LinkedHashMap<>();
        begun.put("log", true);
        begun.put("weights", !status.roles().serving().isEmpty());
        begun.put("sampling", tokens(status, "generator") > 0);
        begun.put("scoring", tokens(status, "scorer") > 0);
        begun.put("batch", tokens(status, "learner") > 0);
        return begun;
    }

    private static double tokens(RunStatus status, String role) {
        return status.roles().tokensPerSecond().getOrDefault(role, 0.0);
    }

    private static TonedLine reward(RunStatus status, int width, Glyphs glyphs) {
        String newest = number(last(status.learning().rewards()));
        String trend = trend(status.learning().rewards());
        String end = trend.isEmpty() ? "" : "  " + trend;
        int room = width - LABEL - newest.length() - end.length() - 2;
        return label("reward")
                .and(newest + "  ", Tone.STRONG)
                .and(spark(status.learning().rewards(), Math.max(0, Math.min(SPARK, room)), glyphs) + end);
    }

    /** Change of the reward per step: mean of the later half of the last steps minus that of the earlier half. */
    private static String trend(List<Double> rewards) {
        List<Double> recent = rewards.subList(Math.max(0, rewards.size() - TREND_STEPS), rewards.size());
        int half = recent.size() / 2;
        if (half < 2) {
            return "";
        }
        double change = (mean(recent.subList(recent.size() - half, recent.size())) - mean(recent.subList(0, half)))
                / (recent.size() - half);
        return String.format(Locale.ROOT, "%+.3f a step", change);
    }

    private static double mean(List<Double> values) {
        return values.stream().mapToDouble(Double::doubleValue).average().orElse(Double.NaN);
    }

    private static TonedLine goal(RunStatus status, int width, Glyphs glyphs) {
        String end = String.format(
                Locale.ROOT,
                " %.2f of %.2f",
                orZero(status.goal().mean()),
                status.goal().reward());
        int bar = Math.max(5, Math.min(40, width - LABEL - end.length() - 2));
        int full = (int) Math.round(bar * Math.max(0, Math.min(1, status.goal().progress())));
        return label("goal")
                .and("[" + glyphs.full().repeat(full) + glyphs.empty().repeat(bar - full) + "]" + end);
    }

    /** One line for a log, normally at most 120 columns; alarms have lines of their own. */
    static String line(RunStatus status) {
        String time = clock(status.elapsedSeconds());
        StepRow step = status.learning().newest();
        if (step == null) {
            String done = begun(status).entrySet().stream()
                    .filter(Map.Entry::getValue)
                    .map(Map.Entry::getKey)
                    .collect(Collectors.joining(", "));
            return time + "  waiting for " + (status.phase().isEmpty() ? "the first step" : status.phase()) + " ("
                    + done + " there)";
        }
        if (!status.phase().isEmpty()) {
            return time + "  step " + status.learning().steps() + "  waiting for " + status.phase();
        }
        return String.format(
                Locale.ROOT,
                "%s  step %d  reward %.3f%s%s  %s  %s tokens/s%s%s",
                time,
                status.learning().steps(),
                last(status.learning().rewards()),
                Double.isNaN(status.goal().reward())
                        ? ""
                        : String.format(
                                Locale.ROOT,
                                " (%.3f of %.2f)",
                                status.goal().mean(),
                                status.goal().reward()),
                status.learning().evaluations().isEmpty()
                        ? ""
                        : "  held out "
                                + EvaluationText.newest(status.learning().evaluations()),
                step.starved()
                        ? starved(status)
                        : String.format(
                                Locale.ROOT,
                                "staleness %.2f, max %s  ESS %s  trained %s",
                                step.stalenessMean(),
                                whole(step.stalenessMax()),
                                number(step.essRatio()),
                                share(step.trainedShare())),
                thousands(tokens(status, "learner")),
                status.troubles().unserved().isEmpty()
                        ? ""
                        : "  unserved for " + named(status.troubles().unserved(), StatusText::seconds),
                status.troubles().lost().isEmpty()
                        ? ""
                        : "  left out "
                                + status.troubles().lost().values().stream()
                                        .mapToLong(Long::longValue)
                                        .sum());
    }

    /** Staleness at the step and ESS of the batch: raw, and as trained on. */
    private static List<TonedLine> figures(RunStatus status, boolean narrow, Glyphs glyphs) {
        StepRow step = status.learning().newest();
        if (step == null) {
            return List.of();
        }
        if (step.starved()) {
            return List.of(label("starved").and(starved(status), Tone.BAD));
        }
        String dot = glyphs.between();
        boolean low = step.essRatio() < RunState.LOW;
        String ess = "ESS " + number(step.essRatio()) + (low ? " low" : "");
        TonedLine stale = label("stale")
                .and("mean " + number(step.stalenessMean()) + ", max " + whole(step.stalenessMax())
                        + (narrow ? "" : " versions"));
        Tone tone = low ? Tone.LOOK : Tone.PLAIN;
        if (narrow) {
            return List.of(stale, label("ESS").and(number(step.essRatio()) + (low ? " low" : ""), tone));
        }
        return List.of(
                stale.and(dot).and(ess, tone).and(", truncated " + number(step.essRatioTruncated())),
                label("batch")
                        .and(step.logged().getRolloutsTrained() + " rollouts trained on, "
                                + step.logged().getRolloutsMasked() + " masked" + dot + share(step.trainedShare())
                                + " of the tokens"),
                label("moment")
                        .and(number(step.secondMoment()) + " raw, " + number(step.secondMomentTrained()) + " trained on"
                                + dot + "KL " + number(step.kl())));
    }

    private static List<TonedLine> roles(RunStatus status) {
        Set<String> known = new TreeSet<>();
        known.addAll(status.roles().tokensPerSecond().keySet());
        known.addAll(status.roles().idle().keySet());
        known.addAll(status.roles().recordsBehind().keySet());
        known.addAll(status.roles().serving().keySet());
        if (known.isEmpty()) {
            return List.of();
        }
        Set<String> ordered = new LinkedHashSet<>(RunTopics.ROLES);
        ordered.retainAll(known);
        ordered.addAll(known);
        List<TonedLine> lines = new ArrayList<>();
        lines.add(TonedLine.of(row("", "tokens/s", "idle", "behind", "version"), Tone.FAINT));
        for (String role : ordered) {
            lines.add(TonedLine.of(row(
                    role,
                    cell(status.roles().tokensPerSecond().get(role), StatusText::thousands),
                    cell(status.roles().idle().get(role), idle -> String.format(Locale.ROOT, "%.0f%%", 100 * idle)),
                    cell(status.roles().recordsBehind().get(role), String::valueOf),
                    cell(status.roles().serving().get(role), String::valueOf))));
        }
        return lines;
    }

    private static String row(String role, String... cells) {
        StringBuilder text = new StringBuilder(padded(role));
        for (String cell : cells) {
            text.append(String.format(Locale.ROOT, "%10s", cell));
        }
        return text.toString();
    }

    private static <V> String cell(@Nullable V value, Function<V, String> format) {
        return value == null ? "-" : format.apply(value);
    }

    private static String starved(RunStatus status) {
        return "no token left in " + status.learning().starvedInARow()
                + (status.learning().starvedInARow() == 1 ? " batch" : " batches in a row");
    }

    private static String whole(double value) {
        return Double.isNaN(value) ? "-" : String.valueOf((long) value);
    }

    private static String share(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.0f%%", 100 * value);
    }

    private static TonedLine label(String text) {
        return TonedLine.of(padded(text), Tone.FAINT);
    }

    private static String padded(String text) {
        return text + " ".repeat(Math.max(1, LABEL - text.length()));
    }

    /** A label and a sentence, wrapped between words. */
    private static List<TonedLine> labelled(String name, String text, Tone tone, int width) {
        List<String> broken = Lines.broken(text, Math.max(8, width - LABEL));
        List<TonedLine> lines = new ArrayList<>();
        for (int i = 0; i < Math.min(ALARM_LINES, broken.size()); i++) {
            boolean goesOn = i == ALARM_LINES - 1 && broken.size() > ALARM_LINES;
            String part = goesOn ? String.join(" ", broken.subList(i, broken.size())) : broken.get(i);
            lines.add(label(i == 0 ? name : "").and(part, tone));
        }
        return lines;
    }

    private static <V> String named(Map<String, V> values, Function<V, String> format) {
        return values.entrySet().stream()
                .map(entry -> entry.getKey() + " " + format.apply(entry.getValue()))
                .collect(Collectors.joining(", "));
    }

    private static String ago(double seconds) {
        return seconds < 1 ? "now" : String.format(Locale.ROOT, "%.0f s ago", seconds);
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

    /** Verdict on a run in two words; the most urgent one. */
    enum RunState {
        ALARM("ALARM", Tone.BAD),
        STARVED("STARVED", Tone.BAD),
        STARTING("STARTING", Tone.FAINT),
        WAITING("WAITING", Tone.LOOK),
        STALLED("NO STEP", Tone.BAD),
        FALLING("REWARD FALLS", Tone.LOOK),
        FLAT("REWARD FLAT", Tone.LOOK),
        LOW_ESS("LOW ESS", Tone.LOOK),
        TRAINING("TRAINING OK", Tone.GOOD);

        /** Threshold shared with the page and the doctor: few rollouts dominate. */
        static final double LOW = 0.3;

        private static final double STALLED_SECONDS = 120;
        private static final int WINDOW = 10;
        private static final double FALLEN = 0.7;
        /** Threshold of a flat reward, shared with the page. */
        private static final double RISE = 0.02;

        private static final int FLAT_STEPS = 60;

        final String words;
        final Tone tone;

        RunState(String words, Tone tone) {
            this.words = words;
            this.tone = tone;
        }

        /** @param stepAge seconds since the newest step; NaN where there is none */
        static RunState of(RunStatus status, double stepAge) {
            StepRow newest = status.learning().newest();
            if (!status.troubles().alarms().isEmpty()
                    || !status.troubles().unserved().isEmpty()) {
                return ALARM;
            }
            if (newest == null) {
                return STARTING;
            }
            if (!status.phase().isEmpty()) {
                return WAITING;
            }
            if (status.learning().starvedInARow() > 0) {
                return STARVED;
            }
            if (stepAge > STALLED_SECONDS) {
                return STALLED;
            }
            List<Double> means = means(status.learning().rewards());
            if (hasFallen(means)) {
                return FALLING;
            }
            if (isFlat(means, status.learning().rewards().size(), status.goal().reward())) {
                return FLAT;
            }
            return newest.essRatio() < LOW ? LOW_ESS : TRAINING;
        }

        /** Of each {@value #WINDOW} neighbouring steps. */
        private static List<Double> means(List<Double> rewards) {
            List<Double> means = new ArrayList<>();
            double sum = 0;
            for (int i = 0; i < rewards.size(); i++) {
                sum += rewards.get(i) - (i >= WINDOW ? rewards.get(i - WINDOW) : 0);
                if (i >= WINDOW - 1) {
                    means.add(sum / WINDOW);
                }
            }
            return means;
        }

        /** Returns whether the mean of the last steps is far below the best such mean. */
        private static boolean hasFallen(List<Double> means) {
            double best = means.stream().mapToDouble(Double::doubleValue).max().orElse(0);
            return !means.isEmpty() && means.get(means.size() - 1) < FALLEN * best;
        }

        /** True if a reward below its goal has not risen over half of its steps; false without a goal. */
        private static boolean isFlat(List<Double> means, int steps, double goal) {
            int before = means.size() - 1 - steps / 2;
            if (steps < FLAT_STEPS || before < 0) {
                return false;
            }
            double last = means.get(means.size() - 1);
            return last < goal && last - means.get(before) < RISE;
        }
    }
}
