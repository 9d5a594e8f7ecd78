package dev.millrace.stages;

import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Finds stages that reported at each of a number of steps and changed no token. Such a stage is a setting without an
 * effect, or a guard that was never needed. Skips stages that only measure.
 *
 * <p>Fed step by step, in order. Names only stages that the newest step reported, so not removed ones. Memory is one
 * count per stage. Not thread-safe.
 */
public final class IdleStages {
    /** Stages that only measure, and weights of 1. */
    private static final Set<String> OBSERVERS =
            Set.of("order", "memory", "second_moment", "ess", "none", "length_trap", "pass_at_k", "pass_at_k_figure");

    /** Default number of steps without an effect. */
    public static final int STEPS = 50;

    private final int steps;
    private Map<String, Idle> newest = Map.of();

    /** @param steps steps without an effect; at least 1 */
    public IdleStages(int steps) {
        if (steps < 1) {
            throw new IllegalArgumentException("a stage is idle after at least 1 step: " + steps);
        }
        this.steps = steps;
    }

    /**
     * A stage that has not acted.
     *
     * @param steps how many steps in a row, up to the newest
     * @param tokensSeen how many tokens reached it in them
     */
    public record Idle(String stage, int steps, long tokensSeen) {
        public String sentence() {
            return "stage " + stage + " has changed nothing in the last " + steps + " steps"
                    + (tokensSeen == 0 ? ": no token reached it" : "");
        }
    }

    /** The next step, as the training log has it. */
    public void add(TrainingStep step) {
        add(StageReports.of(step));
    }

    public void add(List<StageReport> reports) {
        Map<String, Idle> after = new LinkedHashMap<>();
        for (StageReport report : reports) {
            if (OBSERVERS.contains(report.getStage()) || StepDiagnostics.onlyMeasures(report)) {
                continue;
            }
            Idle before = newest.getOrDefault(report.getStage(), new Idle(report.getStage(), 0, 0));
            after.put(
                    report.getStage(),
                    report.getTokensChanged() > 0
                            ? new Idle(report.getStage(), 0, 0)
                            : new Idle(
                                    report.getStage(),
                                    before.steps() + 1,
                                    before.tokensSeen() + report.getTokensSeen()));
        }
        newest = after;
    }

    /**
     * Returns the stages that have not acted for at least the configured number of steps, in the order in which they
     * run.
     */
    public List<Idle> idle() {
        List<Idle> idle = new ArrayList<>();
        for (Idle stage : newest.values()) {
            if (stage.steps() >= steps) {
                idle.add(stage);
            }
        }
        return List.copyOf(idle);
    }
}
