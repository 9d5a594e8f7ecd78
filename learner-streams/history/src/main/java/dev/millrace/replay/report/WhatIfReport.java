package dev.millrace.replay.report;

import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.replay.DecidedFigures;
import dev.millrace.replay.MaskBreakdown;
import dev.millrace.replay.MaskedShare;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.report.ReplayTotals.Total;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportPage;
import dev.millrace.report.SampleMean;
import dev.millrace.report.Section;
import dev.millrace.report.Series;
import dev.millrace.report.Table;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** A replay under other corrections: what they mask and weigh. */
public final class WhatIfReport {
    public static final String STEPS = "steps.csv";

    private static final Axis BATCH = Axis.of("batch");
    private static final List<Figure<DecidedFigures>> PICTURED =
            List.of(named("masked_tokens"), named("ess_ratio"), named("mean_weight"), named("k3"));

    /** The page first. */
    public static final List<String> FILES = files();

    public record StepUnder(ReplayedStep step, int alternative, String name) {
        DecidedFigures figures() {
            return step.figures().get(alternative);
        }
    }

    public static final List<Column<StepUnder>> STEP_COLUMNS = stepColumns();

    private final ReplayTotals totals;
    private final boolean isImported;
    /** Corrections that the others are compared with. */
    private final String own;

    private WhatIfReport(ReplayTotals totals, boolean isImported) {
        this.totals = totals;
        this.isImported = isImported;
        this.own = isImported ? "the import's" : "the run's own";
    }

    private static Figure<DecidedFigures> named(String key) {
        return Figure.named(Figure.DECIDED, key);
    }

    private static List<String> files() {
        List<String> files = new ArrayList<>(List.of("report.html", "report.json", STEPS));
        PICTURED.forEach(figure -> files.add(figure.key() + ".png"));
        return List.copyOf(files);
    }

    private static List<Column<StepUnder>> stepColumns() {
        List<Column<StepUnder>> columns = Figure.columns(
                List.of(
                        Column.count("batch", row -> row.step().batch().id()),
                        Column.count("version", row -> row.step().batch().version()),
                        Column.count(
                                "assembled_at_ms", row -> row.step().batch().assembledAtMs()),
                        Column.significant(
                                "reward", 6, row -> row.step().batch().reward()),
                        Column.significant(
                                "staleness_mean", 6, row -> row.step().batch().stalenessMean()),
                        Column.text("as_recorded", row -> row.step().isAsRecorded()),
                        Column.text("corrections", StepUnder::name),
                        Column.count("tokens", row -> row.figures().tokens().of()),
                        Column.count(
                                "sequences", row -> row.figures().sequences().of())),
                Figure.DECIDED,
                StepUnder::figures);
        columns.add(Column.text(
                "diagnosis",
                row -> row.step()
                        .diagnoses()
                        .get(row.alternative())
                        .map(diagnosis -> diagnosis.cause().title())
                        .orElse(null)));
        return List.copyOf(columns);
    }

    /** @param isImported another system's records, whose corrections are unknown */
    public static Report of(
            String runId, boolean isImported, ReplayTotals totals, long tokens, double seconds, List<String> more) {
        return new WhatIfReport(totals, isImported).report(runId, tokens, seconds, more);
    }

    /** Writes everything but {@value #STEPS}, which the replay wrote. */
    public static void write(ReportFolder files, Report report, Consumer<String> said) throws IOException {
        files.write("report.json", report.json());
        files.write("report.html", ReportPage.of(report));
        List<Chart> charts = report.sections().stream()
                .flatMap(section -> section.charts().stream())
                .toList();
        for (Figure<DecidedFigures> figure : PICTURED) {
            files.draw(
                    figure.key() + ".png",
                    report,
                    charts.stream()
                            .filter(chart -> chart.title().equals(figure.title()))
                            .limit(1)
                            .toList(),
                    1,
                    said);
        }
    }

    private Report report(String runId, long tokens, double seconds, List<String> more) {
        List<String> verdict = new ArrayList<>();
        verdict.add(String.format(
                Locale.ROOT,
                "%s, %,d tokens, %s in %.1f s: %,.0f tokens/s",
                RetrainReport.count(totals.steps(), "step"),
                tokens,
                RetrainReport.count(totals.names().size(), "correction"),
                seconds,
                tokens / Math.max(1e-9, seconds)));
        verdict.add(
                totals.notAsRecorded() == 0
                        ? isImported
                                ? "recorded is the algorithm given on import: the records do not name the corrections used"
                                : "the run's own corrections reproduce every batch as assembled; --rescore at-step"
                                        + " shows the decisions that the learner repeats at the step"
                        : totals.notAsRecorded() + " of " + totals.steps()
                                + " batches do not match these corrections; give the run's configuration with --config");
        verdict.addAll(more);
        List<Chart> first = new ArrayList<>();
        List<Chart> others = new ArrayList<>();
        for (Figure<DecidedFigures> figure : Figure.DECIDED) {
            (PICTURED.contains(figure) ? first : others)
                    .add(Figure.chart(
                            figure.title(), BATCH, totals.batches(), totals.names(), a -> totals.curve(a, figure)));
        }
        List<Chart> recorded = List.of(
                recorded("reward of the batch", totals.rewards()),
                recorded("staleness of the batch, versions", totals.staleness()));
        return Report.of("Replay of run " + runId, verdict)
                .concluding(conclusion())
                .with(Section.of("").with(means()))
                .with(diagnosis())
                .with(Section.of("Over batches"
                                + (totals.stride() > 1 ? ", each point the mean of " + totals.stride() : ""))
                        .with(first))
                .with(Section.of("As recorded").with(recorded).forDetails())
                .with(Section.of("All other figures").with(others).forDetails())
                .with(Section.of("Means of all figures").with(allMeans()).forDetails())
                .with(Section.of("Who is masked")
                        .with(masked(
                                "masked tokens by lag in versions", MaskBreakdown::tokensByLag, WhatIfReport::range))
                        .with(masked(
                                "masked sequences by length in tokens",
                                MaskBreakdown::sequencesByLength,
                                WhatIfReport::range))
                        .with(masked(
                                "masked sequences by sign of the advantage",
                                MaskBreakdown::sequencesBySign,
                                sign -> sign < 0 ? "negative" : sign > 0 ? "positive" : "zero"))
                        .forDetails());
    }

    /** Of the corrections that differ most from the run's own. */
    private Conclusion conclusion() {
        String asked = "How would other corrections have treated the recorded batches?";
        int most = alternatives().stream()
                .skip(1)
                .max(Comparator.comparingDouble(
                        a -> Math.abs(totals.total(a).moreMasked().mean())))
                .orElse(0);
        Conclusion found;
        if (most == 0) {
            found = Conclusion.of(
                            asked,
                            percent(
                                    "no other corrections were given; " + own + " corrections mask %s of the tokens",
                                    totals.total(0).tokens().fraction()),
                            Health.NONE)
                    .sure(totals.steps() + " recorded steps, all counted");
        } else {
            SampleMean more = totals.total(most).moreMasked();
            String name = totals.names().get(most);
            double ess = totals.mean(most, named("ess_ratio"));
            found = Conclusion.of(
                            asked,
                            (more.excludes(0)
                                            ? String.format(
                                                    Locale.ROOT,
                                                    "%s masks %.2f points %s of the tokens of a step",
                                                    name,
                                                    100 * Math.abs(more.mean()),
                                                    more.mean() > 0 ? "more" : "fewer")
                                            : name + " masks as much as " + own)
                                    + alarms(most)
                                    + (totals.names().size() > 2
                                            ? "; of " + (totals.names().size() - 1)
                                                    + " corrections it differs most from " + own
                                            : ""),
                            Health.NONE)
                    .resting(
                            "tokens masked, against " + own,
                            new SampleMean(100 * more.mean(), 100 * more.low(), 100 * more.high(), more.values())
                                            .shown("%+.2f")
                                    + " points"
                                    + (Double.isNaN(ess) ? "" : String.format(Locale.ROOT, ", ESS ratio %.3f", ess)))
                    .sure(String.format(
                            Locale.ROOT,
                            "95 %% interval over %,d steps as if they were independent; after the first different"
                                    + " decision the policy would have differed, which a replay of decisions cannot show",
                            more.values()));
        }
        return totals.notAsRecorded() == 0
                ? found
                : new Conclusion(
                        found.asked(),
                        found.answer(),
                        Health.LOOK,
                        found.figure(),
                        found.sure() + "; " + totals.notAsRecorded() + " of " + totals.steps()
                                + " batches do not match the given configuration");
    }

    private String alarms(int alternative) {
        int own = alarmed(0);
        int others = alarmed(alternative);
        String judged = own == 0 && others == 0
                ? ""
                : ", and " + counted(others, "is unhealthy", "are unhealthy") + " in place of " + own;
        long clipped = totals.total(0).causes().getOrDefault(Cause.CLIP_SATURATION, 0);
        return clipped == 0
                ? judged
                : judged + "; clipping aside, " + counted(clipped, "was unhealthy", "were unhealthy");
    }

    private static String counted(long steps, String one, String more) {
        return steps + (steps == 1 ? " step " + one : " steps " + more);
    }

    /** Alarmed steps, by criteria common to all alternatives. */
    private int alarmed(int alternative) {
        return totals.total(alternative).causes().entrySet().stream()
                .filter(cause -> cause.getKey() != Cause.NONE && cause.getKey() != Cause.CLIP_SATURATION)
                .mapToInt(Map.Entry::getValue)
                .sum();
    }

    /** Null if a replay of decisions cannot know: clipping within a step needs the step. */
    private @Nullable Long steps(Cause cause, int alternative) {
        return cause == Cause.CLIP_SATURATION && alternative != 0
                ? null
                : Long.valueOf(totals.total(alternative).causes().getOrDefault(cause, 0));
    }

    private static String percent(String pattern, double share) {
        return String.format(Locale.ROOT, pattern, String.format(Locale.ROOT, "%.1f %%", 100 * share));
    }

    private Chart recorded(String title, double[] values) {
        return Chart.of(title, BATCH, Axis.of(""), List.of(Series.line("recorded", totals.batches(), values)));
    }

    private List<Integer> alternatives() {
        return IntStream.range(0, totals.names().size()).boxed().toList();
    }

    private Column<Integer> name() {
        return Column.text("corrections", a -> totals.names().get(a));
    }

    private Table means() {
        return Table.of(
                "Means over steps",
                List.of(
                        name(),
                        Column.percent(
                                "tokens masked",
                                2,
                                a -> totals.total(a).tokens().fraction()),
                        Column.percent(
                                "sequences masked",
                                2,
                                a -> totals.total(a).sequences().fraction()),
                        Column.number("weight", 3, a -> totals.mean(a, named("mean_weight"))),
                        Column.number("ESS ratio", 3, a -> totals.mean(a, named("ess_ratio"))),
                        Column.number("least ESS", 3, a -> totals.total(a).leastEss()),
                        Column.number("step scale", 3, a -> totals.mean(a, named("step_scale"))),
                        Column.significant("k3", 2, a -> totals.mean(a, named("k3")))),
                alternatives());
    }

    private Table allMeans() {
        List<Column<Integer>> columns = new ArrayList<>(List.of(name()));
        Figure.DECIDED.forEach(
                figure -> columns.add(Column.significant(figure.title(), 4, a -> totals.mean(a, figure))));
        return Table.of("", columns, alternatives());
    }

    /** Steps by problem; alternatives share a first alarm. */
    private Section diagnosis() {
        EnumSet<Cause> seen = EnumSet.noneOf(Cause.class);
        alternatives().forEach(a -> seen.addAll(totals.total(a).causes().keySet()));
        if (seen.isEmpty()) {
            return Section.of("Diagnosis").noting(List.of("no trainable token, so there is nothing to diagnose"));
        }
        List<Column<Integer>> columns = new ArrayList<>(List.of(name()));
        seen.forEach(cause -> columns.add(Column.countWhereKnown(cause.title(), a -> steps(cause, a))));
        Map<String, List<String>> alarms = new LinkedHashMap<>();
        for (int a : alternatives()) {
            Total total = totals.total(a);
            total.firstAlarm()
                    .ifPresent(alarm -> alarms.computeIfAbsent(alarm, none -> new ArrayList<>())
                            .add(totals.names().get(a)));
        }
        List<String> notes = new ArrayList<>();
        seen.stream()
                .filter(cause -> cause != Cause.NONE)
                .forEach(cause -> notes.add(cause.title() + " (" + cause.letter() + "): " + cause.meaning()));
        if (seen.contains(Cause.CLIP_SATURATION) && totals.names().size() > 1) {
            notes.add("clipping under other corrections is known only by retraining, so their steps are not judged by"
                    + " it, and a step without another finding counts as \"" + Cause.NONE.title()
                    + "\"");
        }
        alarms.forEach((alarm, names) -> notes.add(String.join(", ", names) + ": first " + alarm));
        return Section.of("Diagnosis")
                .with(Table.of("Steps by diagnosis", columns, alternatives()))
                .noting(notes);
    }

    private Table masked(
            String title, Function<MaskBreakdown, Map<Long, MaskedShare>> of, LongFunction<String> called) {
        SortedSet<Long> classes = new TreeSet<>();
        alternatives()
                .forEach(a ->
                        classes.addAll(of.apply(totals.total(a).breakdown()).keySet()));
        List<Column<Integer>> columns = new ArrayList<>(List.of(name()));
        classes.forEach(from -> columns.add(Column.percent(called.apply(from), 2, a -> {
            MaskedShare share = of.apply(totals.total(a).breakdown()).get(from);
            return share == null ? Double.NaN : share.fraction();
        })));
        return Table.of(title, columns, alternatives());
    }

    private static String range(long from) {
        return from < 2 ? String.valueOf(from) : from + "-" + (2 * from - 1);
    }
}
