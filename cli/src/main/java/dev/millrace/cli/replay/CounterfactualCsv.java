package dev.millrace.cli.replay;

import dev.millrace.counterfactual.CourseGradient;
import dev.millrace.counterfactual.CourseStep;
import dev.millrace.counterfactual.GradientStep;
import dev.millrace.counterfactual.RetrainedStep;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/** Steps learnt again, evaluations and gradients, a line for each step and course; an empty field is a number that there is not. */
final class CounterfactualCsv {
    private CounterfactualCsv() {
    }

    /** {@code retrain.csv} and {@code evaluations.csv}. */
    static void write(Path folder, RetrainRecord found) throws IOException {
        List<String> lines = new ArrayList<>(List.of("version,batch,recorded_reward,recorded_staleness,course,as_recorded,weights_sha256,"
            + CourseFigure.STEP.stream().map(CourseFigure::key).collect(Collectors.joining(","))));
        for (RetrainedStep step : found.steps()) {
            for (int c = 0; c < found.names().size(); c++) {
                Optional<CourseStep> one = step.courses().get(c);
                if (one.isPresent()) {
                    lines.add(step.version() + "," + step.batchId() + "," + step.recordedReward() + "," + step.recordedStaleness() + ","
                        + name(found.names().get(c)) + "," + one.get().isAsRecorded() + "," + one.get().weightsSha256() + ","
                        + numbers(CourseFigure.STEP, one.get()));
                }
            }
        }
        Files.write(folder.resolve("retrain.csv"), lines);
        List<String> tried = new ArrayList<>(List.of("version,course,reward"));
        for (int c = 0; c < found.names().size(); c++) {
            double[] rewards = found.rewards(c);
            for (int e = 0; e < rewards.length; e++) {
                tried.add((long) found.evaluatedAt()[e] + "," + name(found.names().get(c)) + "," + rewards[e]);
            }
        }
        Files.write(folder.resolve("evaluations.csv"), tried);
    }

    /** {@code gradients.csv}. */
    static void write(Path folder, GradientRecord found) throws IOException {
        List<String> lines = new ArrayList<>(List.of("version,batch,recorded_reward,update_norm,reference_sequences,reference_norm,"
            + "reference_signal,reference_noise,course," + CourseFigure.GRADIENT.stream().map(CourseFigure::key).collect(Collectors.joining(","))));
        for (GradientStep step : found.steps()) {
            String reference = step.reference().map(of -> of.sequences() + "," + of.norm() + "," + of.signal() + "," + of.noise()).orElse(",,,");
            for (int c = 0; c < found.names().size(); c++) {
                Optional<CourseGradient> one = step.courses().get(c);
                if (one.isPresent()) {
                    lines.add(step.version() + "," + step.batchId() + "," + step.recordedReward() + "," + step.updateNorm() + "," + reference
                        + "," + name(found.names().get(c)) + "," + numbers(CourseFigure.GRADIENT, one.get()));
                }
            }
        }
        Files.write(folder.resolve("gradients.csv"), lines);
    }

    private static <T> String numbers(List<CourseFigure<T>> figures, T of) {
        return figures.stream().map(figure -> figure.of().applyAsDouble(of)).map(value -> Double.isNaN(value) ? "" : String.valueOf(value))
            .collect(Collectors.joining(","));
    }

    private static String name(String name) {
        return name.replace(',', ';');
    }
}
