package dev.millrace.replay.report;

import dev.millrace.replay.Collapse;
import dev.millrace.replay.retrain.RetrainedStep;
import dev.millrace.replay.retrain.VariantStep;
import dev.millrace.replay.retrain.VersionInterval;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.SampleMean;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Whether a re-train reproduces the run, and where each variant ended. */
public final class RetrainReport {
    private static final int RECORDED = 0;
    private static final double ALIKE = 0.005;
    /** Reward difference that counts as below the recorded run. */
    private static final double FAR = 0.05;

    private static final Axis VERSION = Axis.of("version");
    private static final List<String> PICTURED = Stream.of("ess_ratio", "kl_to_recorded", "grad_norm")
            .map(key -> Figure.named(Figure.TRAINED, key).title())
            .toList();

    private RetrainReport() {}

    public static Report of(RetrainSeeds found, VersionInterval range, double seconds) {
        List<String> verdict = new ArrayList<>();
        verdict.add(String.format(
                Locale.ROOT,
                "retrained from version %d to %d: %s, %s%s in %.1f s",
                range.from(),
                range.to(),
                count(found.steps().size(), "step"),
                count(found.names().size(), "variant"),
                found.each().size() == 1 ? "" : ", " + found.each().size() + " seeds",
                seconds));
        if (found.live()) {
            verdict.add(
                    "live: each retraining samples new rollouts of the recorded prompts, equally stale"
                            + (found.each().size() == 1
                                    ? ""
                                    : "; seed 1 has the recorded draws, and KL is its; the other numbers are means over the seeds"));
        }
        verdict.add(proof(found, range));
        List<Integer> variants =
                IntStream.range(0, found.names().size()).boxed().toList();
        variants.forEach(c -> against(found, c).ifPresent(verdict::add));
        List<Chart> tried = tried(found);
        List<Chart> steps = steps(found);
        return Report.of("", verdict)
                .concluding(conclusion(found, range))
                .with(Section.of("")
                        .with(Table.of("", columns(found), variants))
                        .noting(variants.stream()
                                .map(c -> found.names().get(c) + ": " + fate(found, c))
                                .toList()))
                .with(Section.of("Retrained").with(tried.subList(0, 1)).with(pictured(steps)))
                .with(Section.of("Retrained: everything else")
                        .with(tried.subList(1, tried.size()))
                        .with(steps.stream()
                                .filter(chart -> !pictured(steps).contains(chart))
                                .toList())
                        .forDetails());
    }

    /** Of the variant furthest from the recorded course. */
    private static Conclusion conclusion(RetrainSeeds found, VersionInterval range) {
        String asked = "Where would the run have gone from version " + range.from() + " on under other settings?";
        boolean isRun = found.first().parted().isEmpty();
        int furthest = IntStream.range(1, found.names().size())
                .filter(variant -> !Double.isNaN(difference(found, variant).mean()))
                .boxed()
                .max(Comparator.comparingDouble(
                        variant -> Math.abs(difference(found, variant).mean())))
                .orElse(RECORDED);
        String same = isRun
                ? "the run's own settings reproduce its weights bit for bit"
                : "the run's own settings do not reproduce its weights; recorded and variants are compared from the"
                        + " same start";
        if (furthest == RECORDED) {
            return Conclusion.of(
                            asked,
                            isRun ? same : "not as recorded: " + proof(found, range),
                            isRun ? Health.OK : Health.LOOK)
                    .sure(
                            found.names().size() == 1
                                    ? count(found.steps().size(), "step") + " retrained"
                                    : "no variant was evaluated in the task, so its reward is unknown");
        }
        SampleMean away = difference(found, furthest);
        String name = found.names().get(furthest);
        return Conclusion.of(
                        asked,
                        (Math.abs(away.mean()) < ALIKE
                                        ? name + " ends like recorded"
                                        : String.format(
                                                Locale.ROOT,
                                                "%s ends %.2f %s recorded",
                                                name,
                                                Math.abs(away.mean()),
                                                away.mean() < 0 ? "below" : "above"))
                                + (found.names().size() > 2
                                        ? ", of " + (found.names().size() - 1) + " variants the furthest away"
                                        : ""),
                        away.mean() <= -FAR ? Health.LOOK : Health.NONE)
                .resting("reward at the end, less that of recorded", away.shown("%+.2f"))
                .sure((away.values() < 2
                                ? "1 seed, so there is no interval"
                                : "95 % interval over " + away.values() + " seeds")
                        + "; by the mean of " + averaged(found, furthest) + "; "
                        + same);
    }

    private static SampleMean difference(RetrainSeeds found, int variant) {
        return SampleMean.of(found.each().stream()
                .mapToDouble(one -> one.lastReward(variant) - one.lastReward(RECORDED))
                .toArray());
    }

    static List<Chart> pictured(Report report) {
        return report.sections().get(1).charts();
    }

    private static List<Chart> pictured(List<Chart> charts) {
        return charts.stream()
                .filter(chart -> PICTURED.stream().anyMatch(chart.title()::startsWith))
                .toList();
    }

    private static List<Column<Integer>> columns(RetrainSeeds found) {
        return List.of(
                Column.text("variant", c -> found.names().get(c)),
                Column.number(
                        "first reward",
                        2,
                        c -> found.mean(
                                one -> Arrays.stream(one.rewards(c)).findFirst().orElse(Double.NaN))),
                Column.number(
                        "best reward",
                        2,
                        c -> found.mean(
                                one -> Arrays.stream(one.rewards(c)).max().orElse(Double.NaN))),
                Column.number("last reward", 2, c -> found.mean(one -> one.lastReward(c))),
                Column.significant(
                        "mean ESS",
                        3,
                        c -> found.mean(one -> one.mean(
                                c,
                                step -> step.update().tokensTrained() == 0
                                        ? Double.NaN
                                        : step.update().essRatio()))),
                Column.significant(
                        "mean |grad|",
                        3,
                        c -> found.mean(one -> one.mean(c, step -> step.update().gradNorm()))),
                Column.significant(
                        "last KL to recorded",
                        3,
                        c -> found.first().last(c, step -> step.estimates().klToRecorded())),
                Column.significant("last distance", 3, c -> found.mean(one -> one.last(c, VariantStep::distance))),
                Column.countWhereKnown("starved", c -> starved(found, c)));
    }

    /** Over all seeds; null for a variant without a step. */
    private static @Nullable Long starved(RetrainSeeds found, int variant) {
        List<VariantStep> steps = found.each().stream()
                .flatMap(one -> one.steps().stream())
                .flatMap(step -> step.variants().get(variant).stream())
                .toList();
        return steps.isEmpty()
                ? null
                : steps.stream()
                        .filter(step -> step.update().tokensTrained() == 0)
                        .count();
    }

    private static List<Chart> tried(RetrainSeeds found) {
        String what = "reward of the policy in the run's task";
        double[] x = found.evaluatedAt();
        List<Chart> charts = new ArrayList<>();
        charts.add(Figure.chart(what + means(found), VERSION, x, found.names(), found::rewards));
        for (int seed = 0; seed < found.each().size() && found.each().size() > 1; seed++) {
            RetrainRecord one = found.each().get(seed);
            charts.add(Figure.chart(
                    what + ", seed " + (seed + 1),
                    VERSION,
                    x,
                    found.names(),
                    c -> RetrainSeeds.padded(one.rewards(c), x.length)));
        }
        return charts;
    }

    private static List<Chart> steps(RetrainSeeds found) {
        double[] versions =
                found.steps().stream().mapToDouble(RetrainedStep::version).toArray();
        List<Chart> charts = new ArrayList<>();
        for (Figure<VariantStep> figure : Figure.TRAINED) {
            charts.add(Figure.chart(
                    figure.title() + means(found), VERSION, versions, found.names(), c -> found.curve(c, figure.of())));
        }
        charts.add(Figure.chart(
                "reward of the batch (recorded)",
                VERSION,
                versions,
                List.of("recorded"),
                c -> found.steps().stream()
                        .mapToDouble(RetrainedStep::recordedReward)
                        .toArray()));
        charts.add(Figure.chart(
                "staleness of the batch, versions (recorded)",
                VERSION,
                versions,
                List.of("recorded"),
                c -> found.steps().stream()
                        .mapToDouble(RetrainedStep::recordedStaleness)
                        .toArray()));
        return charts;
    }

    private static String means(RetrainSeeds found) {
        return found.each().size() == 1 ? "" : ", mean over seeds";
    }

    /** Comparison with the run's own variant. */
    private static Optional<String> against(RetrainSeeds found, int variant) {
        double difference = found.mean(one -> one.lastReward(variant)) - found.mean(one -> one.lastReward(RECORDED));
        if (variant == RECORDED || Double.isNaN(difference)) {
            return Optional.empty();
        }
        String name = found.names().get(variant);
        String seeds = count(found.each().size(), "seed");
        return Optional.of(
                Math.abs(difference) < ALIKE
                        ? name + " ended like recorded, " + seeds
                        : String.format(
                                Locale.ROOT,
                                "%s ended %.2f %s recorded, by the mean of %s, %s",
                                name,
                                Math.abs(difference),
                                difference < 0 ? "below" : "above",
                                averaged(found, variant),
                                seeds));
    }

    /** Number of evaluations in a final mean. */
    private static String averaged(RetrainSeeds found, int variant) {
        int most = found.each().stream()
                .mapToInt(one -> one.rewards(variant).length)
                .max()
                .orElse(0);
        return "the last " + count(Math.min(Collapse.STAYS, most), "evaluation")
                + (most <= Collapse.STAYS ? ", that of the start among them" : "");
    }

    static String proof(RetrainSeeds found, VersionInterval range) {
        if (found.first().parted().isEmpty()) {
            return "as recorded: the run's own settings " + (found.live() ? sampledAgain(found.first()) + ", and " : "")
                    + "reproduce the weights of "
                    + (range.steps() == 1 ? "version " + range.to() : "all " + count(range.steps(), "version"))
                    + " bit for bit";
        }
        long parted = found.first().parted().getAsLong();
        if (found.live()) {
            return "not as recorded: the run's own settings " + sampledAgain(found.first())
                    + ", and the weights diverge from the recorded ones at version "
                    + parted
                    + ". Without --live the replay says whether it is the sampling: keys and values that outlived a swap, another kind of machine,"
                    + " or other settings of the generator; the comparison of the variants still holds";
        }
        return "not as recorded: under these settings the weights diverge from the recorded ones at version " + parted
                + ". The run had another configuration (give it with --config), another kind of machine or another number of learner.step.shards;"
                + " the comparison still holds: both start from the same version over the same batches";
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

    static String fate(RetrainSeeds found, int variant) {
        if (found.each().size() == 1) {
            return fate(found.first(), variant);
        }
        if (found.each().stream().allMatch(one -> one.ending(variant) == null && one.rewards(variant).length == 0)) {
            return "not evaluated in the task";
        }
        long collapsed = found.each().stream()
                .filter(one ->
                        one.ending(variant) == null && one.collapsedAt(variant).isPresent())
                .count();
        long all = found.each().size();
        return "collapsed with "
                + (collapsed == 0 ? "none of " + all : collapsed == all ? "all " + all : collapsed + " of " + all)
                + " seeds; reward at the end "
                + found.each().stream().map(one -> brief(one, variant)).collect(Collectors.joining(", "))
                + frozen(found, variant);
    }

    private static String frozen(RetrainSeeds found, int variant) {
        long frozen = found.each().stream()
                .filter(one ->
                        one.ending(variant) == null && one.frozenSince(variant).isPresent())
                .count();
        return frozen == 0
                ? ""
                : "; froze with " + frozen + " of " + found.each().size();
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
        String ending = found.ending(variant);
        if (ending != null) {
            return ending;
        }
        if (found.rewards(variant).length == 0) {
            return "not evaluated in the task";
        }
        if (found.collapsedAt(variant).isPresent()) {
            return "collapsed: from version " + found.collapsedAt(variant).getAsLong()
                    + " on its reward stays below half of its best";
        }
        String below = below(found, variant);
        return found.frozenSince(variant).isPresent()
                ? "froze: from version " + found.frozenSince(variant).getAsLong() + " on "
                        + (found.steps().stream()
                                        .flatMap(step -> step.variants().get(variant).stream())
                                        .reduce((first, last) -> last)
                                        .filter(last -> last.update().tokensTrained() == 0)
                                        .isPresent()
                                ? "no token was left to train on, and "
                                : "")
                        + "its weights stayed as they were" + (below.isEmpty() ? "" : "; " + below)
                : "did not collapse" + (below.isEmpty() ? "" : ", but " + below);
    }

    /** Says that a variant ended far below the recorded run; empty if not. */
    private static String below(RetrainRecord found, int variant) {
        double difference = found.lastReward(RECORDED) - found.lastReward(variant);
        return variant != RECORDED && difference >= FAR
                ? String.format(Locale.ROOT, "ended %.2f below recorded", difference)
                : "";
    }

    private static String reward(double value) {
        return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.2f", value);
    }

    static String count(long things, String kind) {
        return String.format(Locale.ROOT, things == 1 ? "%,d %s" : "%,d %ss", things, kind);
    }
}
