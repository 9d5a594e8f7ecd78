package dev.millrace.replay.report;

import dev.millrace.replay.report.GradientReport.GradientRecord;
import dev.millrace.replay.retrain.GradientStep;
import dev.millrace.replay.retrain.GradientStep.ReferenceGradient;
import dev.millrace.replay.retrain.RetrainedStep;
import dev.millrace.replay.retrain.VariantGradient;
import dev.millrace.replay.retrain.VariantStep;
import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportPage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;

public final class CounterfactualFiles {
    public static final List<String> NAMES = List.of(
            "counterfactual.html",
            "counterfactual.json",
            "retrain.csv",
            "evaluations.csv",
            "gradients.csv",
            "retrain.png",
            "gradients.png");

    private record Trained(RetrainSeeds found, int seed, RetrainedStep step, int variant, VariantStep made) {}

    private record Tried(RetrainSeeds found, int seed, int variant, int at) {
        RetrainRecord record() {
            return found.each().get(seed);
        }
    }

    private record Pointed(GradientRecord found, GradientStep step, int variant, VariantGradient made) {}

    private static final List<Column<Trained>> TRAINED = Figure.columns(
            List.of(
                    Column.count("seed", row -> row.seed() + 1),
                    Column.text("rollouts", row -> rollouts(row.found())),
                    Column.count("version", row -> row.step().version()),
                    Column.count("batch", row -> row.step().batchId()),
                    Column.significant("recorded_reward", 6, row -> row.step().recordedReward()),
                    Column.significant(
                            "recorded_staleness", 6, row -> row.step().recordedStaleness()),
                    Column.text("variant", row -> row.found().names().get(row.variant())),
                    Column.text("as_recorded", row -> row.made().isAsRecorded()),
                    Column.text("weights_sha256", row -> row.made().weightsSha256())),
            Figure.TRAINED,
            Trained::made);

    private static final List<Column<Tried>> TRIED = List.of(
            Column.count("seed", row -> row.seed() + 1),
            Column.text("rollouts", row -> rollouts(row.found())),
            Column.count("version", row -> (long) row.record().evaluatedAt()[row.at()]),
            Column.text("variant", row -> row.found().names().get(row.variant())),
            Column.significant("reward", 6, row -> row.record().rewards(row.variant())[row.at()]));

    private static final List<Column<Pointed>> POINTED = Figure.columns(
            List.of(
                    Column.count("version", row -> row.step().version()),
                    Column.count("batch", row -> row.step().batchId()),
                    Column.significant("recorded_reward", 6, row -> row.step().recordedReward()),
                    Column.significant("update_norm", 6, row -> row.step().updateNorm()),
                    reference("reference_sequences", ReferenceGradient::sequences),
                    reference("reference_norm", ReferenceGradient::norm),
                    reference("reference_signal", ReferenceGradient::signal),
                    reference("reference_noise", ReferenceGradient::noise),
                    Column.text("variant", row -> row.found().names().get(row.variant()))),
            Figure.GRADIENT,
            Pointed::made);

    private final ReportFolder files;
    private final Consumer<String> said;
    private Report report;

    public CounterfactualFiles(
            ReportFolder files, String runId, String view, ReportOrigin origin, Consumer<String> said) {
        this.files = files;
        this.said = said;
        this.report = Report.of("Counterfactual training: run " + runId, List.of())
                .shownBy(view)
                .madeBy(origin);
    }

    private static Column<Pointed> reference(String name, ToDoubleFunction<ReferenceGradient> of) {
        return Column.significant(
                name, 6, row -> row.step().reference().map(of::applyAsDouble).orElse(Double.NaN));
    }

    private static String rollouts(RetrainSeeds found) {
        return found.live() ? "own" : "recorded";
    }

    public void add(RetrainSeeds found, Report text) throws IOException {
        List<Trained> trained = new ArrayList<>();
        List<Tried> tried = new ArrayList<>();
        for (int seed = 0; seed < found.each().size(); seed++) {
            for (RetrainedStep step : found.each().get(seed).steps()) {
                for (int c = 0; c < found.names().size(); c++) {
                    Optional<VariantStep> made = step.variants().get(c);
                    if (made.isPresent()) {
                        trained.add(new Trained(found, seed, step, c, made.get()));
                    }
                }
            }
            for (int c = 0; c < found.names().size(); c++) {
                for (int at = 0; at < found.each().get(seed).rewards(c).length; at++) {
                    tried.add(new Tried(found, seed, c, at));
                }
            }
        }
        files.write("retrain.csv", TRAINED, trained);
        files.write("evaluations.csv", TRIED, tried);
        report = report.and(text);
        files.draw("retrain.png", report, RetrainReport.pictured(text), 2, said);
    }

    public void add(GradientRecord found, Report text) throws IOException {
        List<Pointed> pointed = new ArrayList<>();
        for (GradientStep step : found.steps()) {
            for (int c = 0; c < found.names().size(); c++) {
                Optional<VariantGradient> made = step.variants().get(c);
                if (made.isPresent()) {
                    pointed.add(new Pointed(found, step, c, made.get()));
                }
            }
        }
        files.write("gradients.csv", POINTED, pointed);
        report = report.and(text);
        files.draw("gradients.png", report, GradientReport.pictured(text), 2, said);
    }

    public void finish() throws IOException {
        files.write("counterfactual.json", report.json());
        files.write("counterfactual.html", ReportPage.of(report));
        files.finish();
    }
}
