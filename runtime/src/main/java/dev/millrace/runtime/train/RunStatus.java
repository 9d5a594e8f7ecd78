package dev.millrace.runtime.train;

import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.runtime.report.StepRow;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Snapshot of a run for display.
 *
 * @param elapsedSeconds since this invocation began
 * @param phase what is being waited for, such as "starting the broker"; empty once steps are being made
 * @param learning the steps so far
 * @param roles over the last seconds
 * @param troubles that somebody may have to end
 */
public record RunStatus(
        String runId,
        double elapsedSeconds,
        String phase,
        Goal goal,
        Learning learning,
        Roles roles,
        Troubles troubles) {

    /**
     * Distance from the goal.
     *
     * @param reward mean to reach over the last steps; NaN if there is no goal
     * @param progress in [0, 1]
     * @param mean of the window that the goal is about; NaN before the first step
     */
    public record Goal(double reward, double progress, double mean) {}

    /**
     * The steps of a run.
     *
     * @param steps committed steps of the whole run
     * @param maxSteps steps after which the run ends; 0 if there is no such limit
     * @param version newest published version
     * @param rewards mean reward of each step so far, oldest first
     * @param newest the newest committed step: how stale what it trained on was, and how far off policy; null before the first
     * @param starvedInARow how many batches up to the newest had no token left
     * @param evaluations of the policy on held-out prompts so far, by version
     */
    public record Learning(
            long steps,
            long maxSteps,
            long version,
            List<Double> rewards,
            @Nullable StepRow newest,
            long starvedInARow,
            Evaluations evaluations) {}

    /**
     * Figures by role.
     *
     * @param tokensPerSecond over the last seconds
     * @param idle fraction of the last seconds in which a role waited for input
     * @param recordsBehind records not yet consumed
     * @param serving version that each role serves
     */
    public record Roles(
            Map<String, Double> tokensPerSecond,
            Map<String, Double> idle,
            Map<String, Long> recordsBehind,
            Map<String, Long> serving) {}

    /**
     * What may keep a run from getting on.
     *
     * @param idleStages stages that have not acted for many steps, a sentence each
     * @param unserved seconds for which a server has not served what is published, by server; only those that are an alarm
     * @param alarms conditions that keep the run from getting on
     * @param lost records of any topic dropped or dead-lettered by the topology so far, by reason
     */
    public record Troubles(
            List<String> idleStages, Map<String, Double> unserved, List<Alarm> alarms, Map<String, Long> lost) {}
}
