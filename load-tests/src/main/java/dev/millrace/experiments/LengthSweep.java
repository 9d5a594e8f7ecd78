package dev.millrace.experiments;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.corrections.algorithm.EntropyConfig;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.experiments.StalenessRuns.LaggedStep;
import dev.millrace.experiments.StalenessRuns.PromptSeries;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportPage;
import dev.millrace.report.ReportText;
import dev.millrace.report.Section;
import dev.millrace.report.Series;
import dev.millrace.report.Table;
import dev.millrace.schemas.LearnerBatch;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Gradient estimators over the length of responses, with everything else fixed: the two policies, the ten prompts, the
 * reward, and the batch. The estimators are those of {@code lengths.yaml}; their true gradient is the on-policy one of
 * fresh samples.
 *
 * <p>The task is to count on from a digit, modulo ten, so that what a token is worth depends on the prefix. Behavior is
 * the policy after a warm start at the shortest length, current the one {@code lag} steps later.
 *
 * <p>Source of the question: conjecture 1 of "Off-Policy Drift in LLM RL" (Liu 2026).
 *
 * @param lengths in tokens, ascending
 */
public record LengthSweep(
        List<Integer> lengths,
        List<Long> seeds,
        int lag,
        int warmUp,
        double learningRate,
        int batches,
        int oracleBatches) {
    private static final List<String> FILES =
            List.of("lengths.html", "lengths.md", "lengths.csv", "lengths.json", "lengths.png");
    /** Without entropy bonus: its gradient has no importance weights, and outgrows that of the reward in long responses. */
    static final List<Correction> ESTIMATORS = Correction.read("lengths.yaml").stream()
            .map(read -> new Correction(
                    read.key(),
                    read.title(),
                    read.algorithm().with(a -> a.entropy(new EntropyConfig(0, EntropyConfig.Rule.CONSTANT)))))
            .toList();

    private static final Set<String> INTERMEDIATE = Set.of("minpro", "prefix", "geometric");
    private static final int LONGEST = 4096;
    private static final int PROMPT = 3;
    private static final int BATCH = 32;
    private static final int GROUP = 8;

    public LengthSweep {
        lengths = lengths.stream().sorted().distinct().toList();
        seeds = List.copyOf(seeds);
        if (lengths.isEmpty() || lengths.get(0) < 2 || lengths.get(lengths.size() - 1) > LONGEST || seeds.isEmpty()) {
            throw new IllegalArgumentException(
                    "lengths must be at least 2 and at most " + LONGEST + " tokens, and a seed is needed: " + lengths);
        }
        if (!(learningRate > 0 && learningRate <= 1)) {
            throw new IllegalArgumentException("learning-rate must be above 0 and at most 1: " + learningRate);
        }
        if (lag < 1 || warmUp < 0 || batches < 2 || oracleBatches < 2) {
            throw new IllegalArgumentException("lag must be at least 1, and batches and oracle-batches at least 2: "
                    + lag + ", " + batches + " and " + oracleBatches);
        }
    }

    /**
     * One estimator at one length.
     *
     * @param ess {@code (Σ w)² / (n Σ w²)} over the tokens' weights; 0 if all are 0
     */
    record Row(
            long seed,
            int length,
            String estimator,
            double reward,
            double ess,
            @JsonUnwrapped Fit fit) {}

    /**
     * A mean gradient against the true one. Bias, variance and progress are null, undecided, where the noise of the
     * on-policy gradient exceeds it: the unbiased estimate of {@code ‖∇J‖²} is then not above 0.
     *
     * @param bias unbiased estimate of {@code ‖E ĝ − ∇J‖²}, as a share of {@code ‖∇J‖²}; may be below 0
     * @param variance {@code tr Var(ĝ)} of one batch, likewise a share
     * @param cosine to the true gradient; null if one of them is 0
     * @param norm over that of the true gradient; null if that is 0
     * @param progress {@code ⟨∇J, E ĝ⟩² / (tr Var(ĝ) + ‖Bias(ĝ)‖²)}, over that of an on-policy batch
     */
    record Fit(
            @Nullable Double bias,
            @Nullable Double variance,
            @Nullable Double cosine,
            @Nullable Double norm,
            @Nullable Double progress) {

        static Fit of(Moments of, Moments oracle) {
            double product = dot(of.mean(), oracle.mean());
            Double cosine = finite(product / Math.sqrt(of.squaredNorm() * oracle.squaredNorm()));
            Double norm = finite(Math.sqrt(of.squaredNorm() / oracle.squaredNorm()));
            double signal = oracle.squaredNorm() - oracle.variance() / oracle.draws();
            if (!(signal > 0 && oracle.variance() > 0)) {
                return new Fit(null, null, cosine, norm, null);
            }
            double[] difference = of.mean().clone();
            for (int i = 0; i < difference.length; i++) {
                difference[i] -= oracle.mean()[i];
            }
            double bias = dot(difference, difference) - of.variance() / of.draws() - oracle.variance() / oracle.draws();
            double onPolicy = signal * signal / oracle.variance();
            return new Fit(
                    finite(bias / signal),
                    finite(of.variance() / signal),
                    cosine,
                    norm,
                    finite(product * product / (of.variance() + Math.max(0, bias)) / onPolicy));
        }

        private static @Nullable Double finite(double value) {
            return Double.isFinite(value) ? value : null;
        }
    }

    /** @param variance trace of the covariance of one draw, unbiased */
    record Moments(double[] mean, double variance, int draws) {

        static Moments of(List<double[]> draws) {
            double[] mean = new double[draws.get(0).length];
            double squares = 0;
            for (double[] draw : draws) {
                for (int i = 0; i < mean.length; i++) {
                    mean[i] += draw[i] / draws.size();
                }
                squares += dot(draw, draw);
            }
            int n = draws.size();
            return new Moments(mean, (squares - n * dot(mean, mean)) / (n - 1), n);
        }

        double squaredNorm() {
            return dot(mean, mean);
        }
    }

    private static double dot(double[] a, double[] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            sum += a[i] * b[i];
        }
        return sum;
    }

    /** @param said receives a line per length */
    List<Row> run(Consumer<String> said) {
        List<Row> rows = new ArrayList<>();
        for (long seed : seeds) {
            Weights current = Weights.random(model(), seed);
            Weights behavior = current;
            try (LaggedStep step = step(seed, lengths.get(0), Correction.of("none"))) {
                AdamW optimizer = step.newOptimizer();
                for (int t = 0; t < warmUp + lag; t++) {
                    if (t == warmUp) {
                        behavior = current.copy();
                    }
                    step.take(t, t, current, t, current, optimizer);
                }
            }
            for (int length : lengths) {
                long begin = System.nanoTime();
                rows.addAll(rows(seed, length, behavior, current));
                said.accept(String.format(
                        Locale.ROOT, "seed %d, %d tokens: %.0f s", seed, length, (System.nanoTime() - begin) / 1e9));
            }
        }
        return rows;
    }

    private List<Row> rows(long seed, int length, Weights behavior, Weights current) {
        List<LaggedStep> steps = ESTIMATORS.stream()
                .map(estimator -> step(seed, length, estimator))
                .toList();
        try {
            LaggedStep first = steps.get(0);
            List<double[]> oracle = new ArrayList<>();
            double reward = 0;
            for (int i = 0; i < oracleBatches; i++) {
                long now = warmUp + (long) lag;
                LaggedStep.Sampled fresh = first.sample(batches + (long) i, now, current, now, current);
                oracle.add(gradient(first, first.batch(i, fresh, now), current));
                reward += fresh.scored().meanReward() / oracleBatches;
            }
            List<List<double[]>> draws = steps.stream()
                    .map(step -> (List<double[]>) new ArrayList<double[]>())
                    .toList();
            double[] ess = new double[steps.size()];
            for (int i = 0; i < batches; i++) {
                LaggedStep.Sampled stale = first.sample(i, warmUp + (long) lag, behavior, warmUp, current);
                for (int e = 0; e < ess.length; e++) {
                    TrainingBatch batch = steps.get(e).batch(i, stale, warmUp + (long) lag);
                    ess[e] += ess(batch.batch()) / batches;
                    draws.get(e).add(gradient(steps.get(e), batch, current));
                }
            }
            Moments onPolicy = Moments.of(oracle);
            List<Row> rows = new ArrayList<>();
            for (int e = 0; e < ess.length; e++) {
                Fit fit = Fit.of(Moments.of(draws.get(e)), onPolicy);
                rows.add(new Row(seed, length, ESTIMATORS.get(e).key(), reward, ess[e], fit));
            }
            return rows;
        } finally {
            steps.forEach(LaggedStep::close);
        }
    }

    private double[] gradient(LaggedStep step, TrainingBatch batch, Weights current) {
        Gradients sum = step.optimizer()
                .gradient(batch, warmUp + (long) lag, ControlState.initial(), current, 0)
                .sum();
        List<float[]> tensors =
                sum.specs().stream().map(TensorSpec::name).map(sum::values).toList();
        double[] flat =
                new double[tensors.stream().mapToInt(tensor -> tensor.length).sum()];
        int at = 0;
        for (float[] tensor : tensors) {
            for (float value : tensor) {
                flat[at++] = value;
            }
        }
        return flat;
    }

    private static double ess(LearnerBatch batch) {
        double[] sums = new double[3];
        LaggedStep.forEachWeight(batch, weight -> {
            sums[0]++;
            sums[1] += weight;
            sums[2] += weight * weight;
        });
        return sums[2] == 0 ? 0 : sums[1] * sums[1] / (sums[0] * sums[2]);
    }

    private LaggedStep step(long seed, int length, Correction correction) {
        StalenessSettings settings =
                new StalenessSettings(model(), length, BATCH, GROUP, learningRate, warmUp, 1, 1, 1);
        Task counting = new Task(
                "count",
                (ofSeed, ordinal) -> prompt(Math.floorMod(ordinal, 10), length),
                new FixedAnswer(),
                Symbols.tokenizer(),
                PROMPT,
                length);
        return new LaggedStep(new PromptSeries(counting, settings, seed), settings, correction);
    }

    private static Prompt prompt(int digit, int length) {
        StringBuilder answer = new StringBuilder(length);
        for (int i = 1; i <= length; i++) {
            answer.append((digit + i) % 10);
        }
        return new Prompt(new int[] {Symbols.BEGIN, Symbols.digit(digit), Symbols.SEPARATOR}, answer.toString());
    }

    private DecoderShape model() {
        DecoderShape small = StalenessSettings.SMALL_MODEL;
        return new DecoderShape(
                small.vocabSize(),
                small.hiddenSize(),
                small.layers(),
                small.heads(),
                small.kvHeads(),
                small.headSize(),
                small.intermediateSize(),
                PROMPT + lengths.get(lengths.size() - 1),
                small.ropeTheta(),
                small.rmsNormEps(),
                small.tiedHead(),
                small.qkvBias());
    }

    private static final List<Column<Row>> COLUMNS = List.of(
            Column.count("seed", Row::seed),
            Column.count("length", Row::length),
            Column.text("estimator", Row::estimator),
            Column.number("reward", 4, Row::reward),
            Column.significant("ess", 6, Row::ess),
            fit("bias", Fit::bias),
            fit("variance", Fit::variance),
            fit("cosine", Fit::cosine),
            fit("norm", Fit::norm),
            fit("progress", Fit::progress));

    private static Column<Row> fit(String name, Function<Fit, @Nullable Double> value) {
        return Column.significant(name, 6, row -> orNaN(value.apply(row.fit())));
    }

    private static double orNaN(@Nullable Double value) {
        return value == null ? Double.NaN : value;
    }

    /**
     * Runs the sweep and writes it.
     *
     * @param said receives a line per length
     */
    public Report write(Path directory, Consumer<String> said) throws IOException {
        List<Row> rows = run(said);
        Report report = report(rows);
        ObjectMapper mapper = new ObjectMapper();
        ObjectNode json = mapper.createObjectNode();
        json.set("settings", mapper.valueToTree(this));
        json.set("rows", mapper.valueToTree(rows));
        try (ReportFolder files = ReportFolder.begin(directory, FILES)) {
            files.write("lengths.html", ReportPage.of(report));
            files.write("lengths.md", ReportText.markdown(report));
            files.write("lengths.csv", COLUMNS, rows);
            files.write("lengths.json", json.toPrettyString());
            files.draw("lengths.png", report, List.of(chart(rows)), 1, said);
            files.finish();
        }
        return report;
    }

    Report report(List<Row> rows) {
        List<Row> best = best(rows);
        long intermediate = best.stream()
                .filter(row -> INTERMEDIATE.contains(row.estimator()))
                .count();
        int measured = seeds.size() * lengths.size();
        int undecided = measured - best.size();
        return Report.of("Estimators over the length", List.of())
                .concluding(Conclusion.of(
                                "Is the progress of an intermediate unit (prefix, turn) the greatest?",
                                intermediate + " of " + measured + " times"
                                        + (undecided == 0
                                                ? ""
                                                : "; " + undecided
                                                        + " undecided, the noise of the on-policy gradient exceeds it"),
                                intermediate == measured ? Health.OK : Health.LOOK)
                        .resting("greatest progress, by seed and length", named(best)))
                .with(table(
                        "Progress of a batch, over that of an on-policy batch, by seed",
                        rows,
                        "%.2f",
                        row -> row.fit().progress()))
                .with(table("ESS ratio of the weights of tokens", rows, "%.3f", Row::ess))
                .with(table(
                        "Cosine of the mean gradient to the on-policy one",
                        rows,
                        "%.2f",
                        row -> row.fit().cosine()))
                .with(table(
                        "Norm of the mean gradient over the on-policy one's",
                        rows,
                        "%.2f",
                        row -> row.fit().norm()))
                .with(table(
                        "Squared bias over the squared on-policy gradient",
                        rows,
                        "%.2g",
                        row -> row.fit().bias()))
                .with(table(
                        "Variance of a batch over the squared on-policy gradient",
                        rows,
                        "%.2g",
                        row -> row.fit().variance()))
                .with(Section.of("Progress over the length").with(List.of(chart(rows))));
    }

    /** The greatest progress of each seed and length where it is decided. */
    private static List<Row> best(List<Row> rows) {
        return rows.stream()
                .filter(row -> row.fit().progress() != null)
                .collect(Collectors.groupingBy(row -> List.of(row.seed(), row.length())))
                .values()
                .stream()
                .map(all -> all.stream()
                        .max(Comparator.comparingDouble(row -> orNaN(row.fit().progress())))
                        .orElseThrow())
                .sorted(Comparator.comparingLong(Row::seed).thenComparingInt(Row::length))
                .toList();
    }

    private static String named(List<Row> rows) {
        return rows.stream().map(row -> row.length() + " " + row.estimator()).collect(Collectors.joining(", "));
    }

    private Section table(String title, List<Row> rows, String format, Function<Row, @Nullable Double> value) {
        List<Column<Correction>> columns = new ArrayList<>(List.of(Column.text("estimator", Correction::title)));
        for (int length : lengths) {
            columns.add(Column.text(
                    length + " tokens",
                    estimator -> rows.stream()
                            .filter(row ->
                                    row.length() == length && row.estimator().equals(estimator.key()))
                            .map(row -> shown(format, value.apply(row)))
                            .collect(Collectors.joining(" / "))));
        }
        return Section.of(title).with(Table.of("", columns, ESTIMATORS));
    }

    private static String shown(String format, @Nullable Double value) {
        return value == null ? "undecided" : String.format(Locale.ROOT, format, value);
    }

    private Chart chart(List<Row> rows) {
        return Chart.of(
                "progress of a batch, over that of an on-policy batch",
                Axis.of("length").in("tokens").logarithmic(),
                Axis.of("progress"),
                ESTIMATORS.stream()
                        .map(estimator -> Series.line(
                                estimator.title(),
                                lengths.stream()
                                        .mapToDouble(Integer::doubleValue)
                                        .toArray(),
                                lengths.stream()
                                        .mapToDouble(length -> rows.stream()
                                                .filter(row -> row.length() == length
                                                        && row.estimator().equals(estimator.key()))
                                                .mapToDouble(
                                                        row -> orNaN(row.fit().progress()))
                                                .average()
                                                .orElse(Double.NaN))
                                        .toArray()))
                        .toList());
    }
}
