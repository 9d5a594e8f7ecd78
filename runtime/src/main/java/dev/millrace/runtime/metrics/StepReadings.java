package dev.millrace.runtime.metrics;

import dev.millrace.runtime.report.KnownFigures;
import dev.millrace.runtime.report.StepFigure;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.report.VerlFigures;
import dev.millrace.schemas.StageReport;
import dev.millrace.stages.StageReports;
import io.micrometer.core.instrument.Tags;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/**
 * Every number of a step's record, each with its gauge and its curve; what was not computed, or is not finite, is absent.
 *
 * <p>The role is the one that computed it: {@code learner} at the step, {@code topology} when the batch was assembled.
 * What stages report has the stage as a tag too; numbers known only by their name in the training log share one gauge
 * with that name as a tag. Used by one thread.
 */
public final class StepReadings {
    static final String STAGE_VALUE = "millrace.stage.value";
    static final String OTHER = "millrace.step.other";

    private static final String RECORDED = "recorded.";
    private static final String LEARNER = "learner";
    private static final String TOPOLOGY = "topology";

    private final List<Reading> readings = new ArrayList<>();
    private final Set<String> curves = new HashSet<>();

    private StepReadings() {}

    public static List<Reading> of(StepRow step) {
        StepReadings all = new StepReadings();
        Map<String, Double> others = new TreeMap<>(step.metrics());
        for (StepFigure figure : KnownFigures.all()) {
            all.addFigure(figure, step);
            others.remove(figure.key());
        }
        StageReports.inForce(step.metrics()).values().forEach(report -> all.addStage(LEARNER, "stage/", report));
        StageReports.ofBatch(step.metrics()).values().forEach(report -> all.addStage(TOPOLOGY, "recorded/", report));
        others.forEach((name, value) -> {
            if (!StageReports.isPart(name)) {
                all.add(
                        OTHER,
                        Tags.of("role", LEARNER, "figure", name),
                        "",
                        "a figure of an objective, a plug-in or another trainer",
                        "other/" + name,
                        value);
            }
        });
        return all.readings;
    }

    private void addFigure(StepFigure figure, StepRow step) {
        boolean isRecorded = figure.key().startsWith(RECORDED);
        String key = isRecorded ? figure.key().substring(RECORDED.length()) : figure.key();
        Optional<StepMeter> meter = StepMeter.of(key);
        if (meter.isEmpty()) {
            return;
        }
        add(
                meter.get().name(),
                Tags.of("role", isRecorded ? TOPOLOGY : LEARNER),
                meter.get().unit(),
                isRecorded
                        ? KnownFigures.find(key).map(StepFigure::meaning).orElse(figure.meaning())
                        : figure.meaning(),
                isRecorded ? "recorded/" + key : figure.verlName().orElse("step/" + key),
                figure.number(step) * meter.get().factor());
    }

    private void addStage(String role, String curve, StageReport report) {
        String stage = report.getStage();
        Tags tags = Tags.of("role", role, "stage", stage);
        String prefix = curve + stage + "/";
        addCount(tags, prefix, "tokens_seen", "tokens that reached a stage", report.getTokensSeen());
        addCount(
                tags,
                prefix,
                "tokens_changed",
                "tokens that a stage clipped, masked or weighted",
                report.getTokensChanged());
        addCount(tags, prefix, "sequences_seen", "sequences that reached a stage", report.getSequencesSeen());
        addCount(
                tags,
                prefix,
                "sequences_changed",
                "sequences in which a stage changed a token",
                report.getSequencesChanged());
        addCount(
                tags,
                prefix,
                "tokens_changed_ratio",
                "share of the tokens that reached a stage and were clipped, masked or weighted",
                (double) report.getTokensChanged() / report.getTokensSeen());
        for (Map.Entry<String, Double> value : report.getValues().entrySet()) {
            addValue(role, stage, tags, prefix, value.getKey(), value.getValue());
        }
    }

    private void addCount(Tags tags, String prefix, String name, String meaning, double value) {
        add("millrace.stage." + name.replace('_', '.'), tags, "", meaning, prefix + name, value);
    }

    private void addValue(String role, String stage, Tags tags, String prefix, String figure, double value) {
        if (figure.startsWith(VerlFigures.CORRECTION)) {
            boolean isFirst = role.equals(LEARNER) && !curves.contains(figure);
            add(
                    "millrace." + figure.replace('/', '.'),
                    tags,
                    "",
                    "verl's " + figure,
                    isFirst ? figure : prefix + figure,
                    value);
        } else {
            add(
                    STAGE_VALUE,
                    Tags.of("role", role, "stage", stage, "figure", figure),
                    "",
                    "another figure that a stage reports",
                    prefix + figure,
                    value);
        }
    }

    private void add(String meter, Tags tags, String unit, String meaning, String curve, double value) {
        if (Double.isFinite(value)) {
            curves.add(curve);
            readings.add(new Reading(meter, tags, unit, meaning, curve, value));
        }
    }
}
