package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.objective.ActedOn;
import dev.millrace.schemas.StageReport;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Gathers the metrics of one batch while its updates are made. Belongs to one thread. */
final class StepMetricsTally {
    private final Map<StepMetric, Double> sums = new EnumMap<>(StepMetric.class);
    private final Map<StepMetric, Double> facts = new EnumMap<>(StepMetric.class);
    private final Map<String, Double> objective = new HashMap<>();
    private long objectiveTokensSeen;
    private long objectiveTokensActed;
    private long objectiveSequencesSeen;
    private long objectiveSequencesActed;
    private int updates;

    void beginUpdate() {
        updates++;
    }

    /** Of one update. */
    void add(StepMetric metric, double value) {
        sums.merge(metric, value, Double::sum);
    }

    /** Of one update, by the objective's own name. */
    void addOfObjective(String name, double value) {
        objective.merge(name, value, Double::sum);
    }

    /** On how much of an update's minibatch the objective acted. */
    void addActedOn(TokenBatch minibatch, ActedOn acted) {
        objectiveTokensSeen += minibatch.trainedTokens();
        objectiveTokensActed += acted.tokens();
        objectiveSequencesSeen += minibatch.sequenceCount();
        objectiveSequencesActed += acted.sequences();
    }

    /** The same over all updates, as a stage reports; empty without an update. */
    Optional<StageReport> objectiveReport() {
        return updates == 0
                ? Optional.empty()
                : Optional.of(new StageReport(
                        "objective",
                        objectiveTokensSeen,
                        objectiveTokensActed,
                        objectiveSequencesSeen,
                        objectiveSequencesActed,
                        Map.of()));
    }

    /** A fact about the batch, not about an update. */
    void once(StepMetric metric, double value) {
        facts.put(metric, value);
    }

    /** The same, if it was computed. */
    void onceIfKnown(StepMetric metric, @Nullable Double value) {
        if (value != null) {
            once(metric, value);
        }
    }

    void addSeconds(StepMetric phase, long sinceNanos) {
        facts.merge(phase, (System.nanoTime() - sinceNanos) / 1e9, Double::sum);
    }

    /** A forward pass of its own over some members. */
    void addForward(long sinceNanos) {
        addSeconds(StepMetric.SECONDS_FORWARD, sinceNanos);
        facts.merge(StepMetric.FORWARD_PASSES, 1.0, Double::sum);
    }

    int updates() {
        return updates;
    }

    StepMetrics metrics() {
        Map<StepMetric, Double> values = new EnumMap<>(facts);
        sums.forEach((metric, sum) -> values.put(metric, sum / updates));
        Map<String, Double> means = new HashMap<>();
        objective.forEach((name, sum) -> means.put(name, sum / updates));
        return new StepMetrics(updates, values, means);
    }
}
