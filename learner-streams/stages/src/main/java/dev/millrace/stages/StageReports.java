package dev.millrace.stages;

import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Converts stage reports to records and to metrics of the training log, named {@code stage.<name>.<figure>}. If the
 * learner decided again, {@code recorded.stage.} holds the batch's own decisions.
 */
public final class StageReports {
    private static final String IN_FORCE = "stage.";
    private static final String OF_BATCH = "recorded.stage.";
    private static final String CHANGED = ".tokens_changed";

    private StageReports() {}

    /** Converts the stages' new reports to records. */
    public static List<StageReport> of(List<StageOutcome> outcomes) {
        return outcomes.stream()
                .map(outcome -> new StageReport(
                        outcome.stage(),
                        outcome.tokensSeen(),
                        outcome.tokensActed(),
                        outcome.sequencesSeen(),
                        outcome.sequencesActed(),
                        new TreeMap<>(outcome.values())))
                .toList();
    }

    /** Returns the reports in force by stage; the batch's for a stage that only the batch had. */
    public static List<StageReport> of(TrainingStep step) {
        Map<String, StageReport> reports = ofBatch(step.getMetrics());
        reports.putAll(inForce(step.getMetrics()));
        return new ArrayList<>(reports.values());
    }

    /** Returns the learner's reports by stage if it decided again; without stages that only the batch had. */
    public static Map<String, StageReport> inForce(Map<String, Double> metrics) {
        return read(IN_FORCE, metrics);
    }

    /** Returns the reports on the batch's own decisions by stage. */
    public static Map<String, StageReport> ofBatch(Map<String, Double> metrics) {
        return read(OF_BATCH, metrics);
    }

    /** Adds a report to the metrics of a step as of a stage in force. */
    public static void putInForce(StageReport report, Map<String, Double> metrics) {
        put(IN_FORCE, report, metrics);
    }

    /** Adds a report to the metrics of a step as of the batch's own decisions. */
    public static void putOfBatch(StageReport report, Map<String, Double> metrics) {
        put(OF_BATCH, report, metrics);
    }

    private static void put(String kind, StageReport report, Map<String, Double> metrics) {
        String prefix = kind + report.getStage() + ".";
        metrics.put(prefix + "tokens_seen", (double) report.getTokensSeen());
        metrics.put(prefix + "tokens_changed", (double) report.getTokensChanged());
        metrics.put(prefix + "sequences_seen", (double) report.getSequencesSeen());
        metrics.put(prefix + "sequences_changed", (double) report.getSequencesChanged());
        report.getValues().forEach((name, value) -> metrics.put(prefix + name, value));
    }

    /** Returns whether a metric of the training log is a part of a stage's report. */
    public static boolean isPart(String metric) {
        return metric.startsWith(IN_FORCE) || metric.startsWith(OF_BATCH);
    }

    private static Map<String, StageReport> read(String kind, Map<String, Double> metrics) {
        Map<String, StageReport> reports = new TreeMap<>();
        for (String key : metrics.keySet()) {
            if (key.startsWith(kind) && key.endsWith(CHANGED) && key.length() > kind.length() + CHANGED.length()) {
                String stage = key.substring(kind.length(), key.length() - CHANGED.length());
                reports.put(stage, report(stage, kind + stage + ".", metrics));
            }
        }
        return reports;
    }

    private static StageReport report(String stage, String prefix, Map<String, Double> metrics) {
        Map<String, Double> values = new TreeMap<>();
        metrics.forEach((key, value) -> {
            if (key.startsWith(prefix)) {
                values.put(key.substring(prefix.length()), value);
            }
        });
        return new StageReport(
                stage,
                count(values, "tokens_seen"),
                count(values, "tokens_changed"),
                count(values, "sequences_seen"),
                count(values, "sequences_changed"),
                values);
    }

    private static long count(Map<String, Double> values, String name) {
        Double count = values.remove(name);
        return count == null ? 0 : Math.round(count);
    }
}
