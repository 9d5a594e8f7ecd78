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
 * @param runId the run
 * @param elapsedSeconds since this invocation began
 * @param phase what is being waited for, such as "starting the broker"; empty once steps are being made
 * @param goal mean reward to reach over the last steps; NaN if there is none
 * @param progress how far the run is towards its goal, in [0, 1]
 * @param steps committed steps of the whole run
 * @param maxSteps steps after which the run ends; 0 if there is no such limit
 * @param version newest published version
 * @param rewards mean reward of each step so far, oldest first
 * @param rewardMean mean of the window that the goal is about; NaN before the first step
 * @param newest the newest committed step: how stale what it trained on was, and how far off policy; null before the first
 * @param starvedInARow how many batches up to the newest had no token left
 * @param idleStages stages that have not acted for many steps, a sentence each
 * @param tokensPerSecond over the last seconds, by role
 * @param idle fraction of the last seconds in which a role waited for input, by role
 * @param recordsBehind records not yet consumed, by role
 * @param serving version that each role serves, by role
 * @param unserved seconds for which a server has not served what is published, by server; only those that are an alarm
 * @param alarms conditions that keep the run from getting on
 * @param evaluations of the policy on held-out prompts so far, by version
 * @param lost records of any topic dropped or dead-lettered by the topology so far, by reason
 */
public record RunStatus(
        String runId,
        double elapsedSeconds,
        String phase,
        double goal,
        double progress,
        long steps,
        long maxSteps,
        long version,
        List<Double> rewards,
        double rewardMean,
        @Nullable StepRow newest,
        long starvedInARow,
        List<String> idleStages,
        Map<String, Double> tokensPerSecond,
        Map<String, Double> idle,
        Map<String, Long> recordsBehind,
        Map<String, Long> serving,
        Map<String, Double> unserved,
        List<Alarm> alarms,
        Evaluations evaluations,
        Map<String, Long> lost) {}
