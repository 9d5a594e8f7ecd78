package dev.millrace.experiments;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonUnwrapped;
import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Evaluation;
import dev.millrace.replay.Collapse;
import dev.millrace.report.Column;
import dev.millrace.report.Sample;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Outcome of one run.
 *
 * <p>A run <em>collapsed</em> if a number was not finite, or its evaluated reward fell below half of the best before
 * for its last {@value #STAYS} evaluations at least. Otherwise it <em>keeps up</em> if its last reward is at most
 * {@value #MARGIN} below the least of its seed's on-policy runs, else it is <em>behind</em>. Last rewards are means of
 * {@value #LAST} evaluations.
 *
 * <p>Drift (ESS, second moment, KL, total variation, χ²) is the median over a window: the {@value #BEFORE} steps before the fall of a
 * collapsed run; otherwise the steps at whole lag until the task was learnt; without such a step, all steps.
 *
 * @param refused the number that was not finite; null if all were
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
record RunRow(
        @JsonUnwrapped RunKey key,
        Outcome outcome,
        @JsonUnwrapped Learning learning,
        @JsonUnwrapped Drift drift,
        @JsonUnwrapped Treatment treatment,
        @Nullable String refused) {
    /**
     * Evaluations.
     *
     * @param reached step of the first evaluation with reward {@value RunRow#LEARNT}; -1 if none
     * @param collapsedAt step of the first evaluation below half; -1 if it did not collapse
     */
    record Learning(
            double firstReward,
            double bestReward,
            double lastReward,
            double lastAccuracy,
            long reached,
            long collapsedAt) {}

    /** @param tv null in rows written before it was recorded, as is chiSquare */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    record Drift(
            double essRatio,
            double secondMoment,
            double kl,
            @Nullable Double tv,
            @Nullable Double chiSquare) {}

    /**
     * What the correction did.
     *
     * @param masked mean share of sampled tokens without gradient
     * @param clipped mean share of trained tokens with a clipped objective
     * @param starved steps without a token to train on; null if not recorded
     */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    record Treatment(
            double masked,
            double clipped,
            double stepScale,
            double gradNorm,
            @Nullable Long starved) {}

    static final int STAYS = Collapse.STAYS;
    static final int LAST = 4;
    static final int BEFORE = 32;
    static final double MARGIN = 0.05;
    static final double LEARNT = 0.9;

    enum Outcome {
        KEEPS_UP,
        BEHIND,
        COLLAPSED
    }

    /** @param onPolicy runs at lag 0 of the same seed, at least one */
    static RunRow of(GridRunResult run, List<GridRunResult> onPolicy) {
        List<Evaluation> evaluations = run.evaluations();
        long collapsedAt = collapsedAt(run);
        long reached = evaluations.stream()
                .filter(e -> e.reward() >= LEARNT)
                .mapToLong(Evaluation::step)
                .findFirst()
                .orElse(-1);
        double last = last(run, Evaluation::reward);
        Outcome outcome = collapsedAt >= 0
                ? Outcome.COLLAPSED
                : last
                                >= onPolicy.stream()
                                                .mapToDouble(of -> last(of, Evaluation::reward))
                                                .min()
                                                .orElseThrow()
                                        - MARGIN
                        ? Outcome.KEEPS_UP
                        : Outcome.BEHIND;
        List<StepPoint> window = window(run, collapsedAt, reached);
        return new RunRow(
                run.key(),
                outcome,
                new Learning(
                        evaluations.get(0).reward(),
                        evaluations.stream()
                                .mapToDouble(Evaluation::reward)
                                .max()
                                .orElseThrow(),
                        last,
                        last(run, Evaluation::accuracy),
                        reached,
                        collapsedAt),
                new Drift(
                        median(window, point -> point.drift().essRatio()),
                        median(window, point -> point.drift().secondMoment()),
                        median(window, point -> point.drift().kl()),
                        median(window, point -> point.drift().tv()),
                        median(window, point -> point.drift().chiSquare())),
                new Treatment(
                        mean(run.points(), point -> point.update().maskedFraction()),
                        mean(run.points(), point -> point.update().clipFraction()),
                        mean(run.points(), point -> point.update().stepScale()),
                        median(run.points(), point -> point.update().gradNorm()),
                        starved(run.points())),
                run.refused());
    }

    private static long collapsedAt(GridRunResult run) {
        OptionalInt fall = Collapse.at(
                run.evaluations().stream().mapToDouble(Evaluation::reward).toArray());
        if (fall.isPresent()) {
            return run.evaluations().get(fall.getAsInt()).step();
        }
        return run.refused() == null ? -1 : run.points().size();
    }

    private static List<StepPoint> window(GridRunResult run, long collapsedAt, long reached) {
        long from = collapsedAt >= 0 ? collapsedAt - BEFORE : run.key().lag();
        long to = collapsedAt >= 0 ? collapsedAt : reached >= 0 ? reached : Long.MAX_VALUE;
        List<StepPoint> window = run.points().stream()
                .filter(p -> p.step() >= from && p.step() < to)
                .toList();
        return window.isEmpty() ? run.points() : window;
    }

    private static double last(GridRunResult run, ToDoubleFunction<Evaluation> value) {
        List<Evaluation> all = run.evaluations();
        return all.subList(Math.max(0, all.size() - LAST), all.size()).stream()
                .mapToDouble(value)
                .average()
                .orElseThrow();
    }

    private static @Nullable Long starved(List<StepPoint> points) {
        return points.stream().allMatch(point -> point.update().starved() != null)
                ? points.stream()
                        .filter(point -> Boolean.TRUE.equals(point.update().starved()))
                        .count()
                : null;
    }

    /** NaN of none. */
    static <T> double mean(List<T> points, ToDoubleFunction<T> value) {
        return points.stream().mapToDouble(value).average().orElse(Double.NaN);
    }

    /** NaN of none. */
    static <T> double median(List<T> points, ToDoubleFunction<T> value) {
        return points.isEmpty()
                ? Double.NaN
                : Sample.of(points.stream().map(value::applyAsDouble).toList()).median();
    }

    static final List<Column<RunRow>> COLUMNS = List.of(
            Column.count("lag", row -> row.key().lag()),
            Column.text("correction", row -> row.key().correction().key()),
            Column.count("seed", row -> row.key().seed()),
            Column.text("outcome", row -> row.outcome().name().toLowerCase(Locale.ROOT)),
            Column.number("first_reward", 6, row -> row.learning().firstReward()),
            Column.number("best_reward", 6, row -> row.learning().bestReward()),
            Column.number("last_reward", 6, row -> row.learning().lastReward()),
            Column.number("last_accuracy", 6, row -> row.learning().lastAccuracy()),
            step("reached", row -> row.learning().reached()),
            step("collapsed_at", row -> row.learning().collapsedAt()),
            Column.number("ess_ratio", 6, row -> row.drift().essRatio()),
            Column.number("second_moment", 6, row -> row.drift().secondMoment()),
            Column.number("kl", 6, row -> row.drift().kl()),
            Column.number("tv", 6, row -> Objects.requireNonNullElse(row.drift().tv(), Double.NaN)),
            Column.number(
                    "chi_square",
                    6,
                    row -> Objects.requireNonNullElse(row.drift().chiSquare(), Double.NaN)),
            Column.number("masked", 6, row -> row.treatment().masked()),
            Column.number("clipped", 6, row -> row.treatment().clipped()),
            Column.number("step_scale", 6, row -> row.treatment().stepScale()),
            Column.number("grad_norm", 6, row -> row.treatment().gradNorm()),
            Column.countWhereKnown("starved", row -> row.treatment().starved()),
            Column.text("refused", RunRow::refused));

    private static Column<RunRow> step(String name, ToLongFunction<RunRow> value) {
        return Column.text(name, row -> value.applyAsLong(row) < 0 ? null : value.applyAsLong(row));
    }
}
