package dev.millrace.cli.replay;

import dev.millrace.replay.retrain.GradientStep;
import dev.millrace.replay.retrain.RetrainedStep;
import dev.millrace.replay.retrain.VariantGradient;
import dev.millrace.replay.retrain.VariantStep;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** Steps learnt again, evaluations and gradients, a line for each step and variant; an empty field is a number that there is not. */
final class CounterfactualCsv {
    private CounterfactualCsv() {}

    /** {@code retrain.csv} and {@code evaluations.csv}. */
    static void write(Path folder, RetrainSeeds found) throws IOException {
        List<String> lines = new ArrayList<>(List.of(
                "seed,rollouts,version,batch,recorded_reward,recorded_staleness,variant,as_recorded,weights_sha256,"
                        + VariantFigure.STEP.stream().map(VariantFigure::key).collect(Collectors.joining(","))));
        List<String> tried = new ArrayList<>(List.of("seed,rollouts,version,variant,reward"));
        for (int seed = 0; seed < found.each().size(); seed++) {
            String start = (seed + 1) + "," + (found.live() ? "own" : "recorded") + ",";
            steps(start, found.each().get(seed), lines);
            evaluations(start, found.each().get(seed), tried);
        }
        Files.write(folder.resolve("retrain.csv"), lines);
        Files.write(folder.resolve("evaluations.csv"), tried);
    }

    private static void steps(String start, RetrainRecord found, List<String> lines) {
        for (RetrainedStep step : found.steps()) {
            for (int c = 0; c < found.names().size(); c++) {
                Optional<VariantStep> one = step.variants().get(c);
                if (one.isPresent()) {
                    lines.add(start + step.version() + "," + step.batchId() + "," + step.recordedReward() + ","
                            + step.recordedStaleness() + ","
                            + name(found.names().get(c)) + "," + one.get().isAsRecorded() + ","
                            + one.get().weightsSha256() + ","
                            + numbers(VariantFigure.STEP, one.get()));
                }
            }
        }
    }

    private static void evaluations(String start, RetrainRecord found, List<String> lines) {
        for (int c = 0; c < found.names().size(); c++) {
            double[] rewards = found.rewards(c);
            for (int e = 0; e < rewards.length; e++) {
                lines.add(start + (long) found.evaluatedAt()[e] + ","
                        + name(found.names().get(c)) + "," + rewards[e]);
            }
        }
    }

    /** {@code gradients.csv}. */
    static void write(Path folder, GradientRecord found) throws IOException {
        List<String> lines =
                new ArrayList<>(List.of("version,batch,recorded_reward,update_norm,reference_sequences,reference_norm,"
                        + "reference_signal,reference_noise,variant,"
                        + VariantFigure.GRADIENT.stream()
                                .map(VariantFigure::key)
                                .collect(Collectors.joining(","))));
        for (GradientStep step : found.steps()) {
            String reference = step.reference()
                    .map(of -> of.sequences() + "," + of.norm() + "," + of.signal() + "," + of.noise())
                    .orElse(",,,");
            for (int c = 0; c < found.names().size(); c++) {
                Optional<VariantGradient> one = step.variants().get(c);
                if (one.isPresent()) {
                    lines.add(step.version() + "," + step.batchId() + "," + step.recordedReward() + ","
                            + step.updateNorm() + "," + reference + ","
                            + name(found.names().get(c)) + "," + numbers(VariantFigure.GRADIENT, one.get()));
                }
            }
        }
        Files.write(folder.resolve("gradients.csv"), lines);
    }

    private static <T> String numbers(List<VariantFigure<T>> figures, T of) {
        return figures.stream()
                .map(figure -> figure.of().applyAsDouble(of))
                .map(value -> Double.isNaN(value) ? "" : String.valueOf(value))
                .collect(Collectors.joining(","));
    }

    private static String name(String name) {
        return name.replace(',', ';');
    }
}
