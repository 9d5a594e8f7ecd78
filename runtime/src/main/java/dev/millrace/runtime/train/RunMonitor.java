package dev.millrace.runtime.train;

import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.runtime.config.GoalConfig;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.stages.IdleStages;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Puts together what is known of a run at one moment: its steps, its meters, its lag. Used by one thread. */
final class RunMonitor {
    private static final Logger LOG = LoggerFactory.getLogger(RunMonitor.class);
    private static final double LAG_PERIOD_SECONDS = 1.5;

    private final String runId;
    private final GoalConfig goal;
    private final long maxSteps;
    private final List<StepRow> steps;
    private final Rates rates;
    private final ConsumerLag consumerLag;
    private final Supplier<List<Alarm>> alarms;
    private final Supplier<List<IdleStages.Idle>> idleStages;
    private final Supplier<Evaluations> evaluations;
    private Map<String, Long> lag = Map.of();
    private boolean clusterSilent;
    private double lagReadAt = Double.NEGATIVE_INFINITY;

    RunMonitor(
            String runId,
            GoalConfig goal,
            long maxSteps,
            List<StepRow> steps,
            MeterRegistry meters,
            ConsumerLag consumerLag,
            Supplier<List<Alarm>> alarms,
            Supplier<List<IdleStages.Idle>> idleStages,
            Supplier<Evaluations> evaluations) {
        this.evaluations = evaluations;
        this.idleStages = idleStages;
        this.runId = runId;
        this.goal = goal;
        this.maxSteps = maxSteps;
        this.steps = steps;
        this.rates = new Rates(meters);
        this.consumerLag = consumerLag;
        this.alarms = alarms;
    }

    /** Mean reward over the goal's window; NaN while there are fewer steps than that. */
    double windowMean() {
        return steps.size() < goal.overSteps() ? Double.NaN : meanOfLast(goal.overSteps());
    }

    /** True once the goal is reached. */
    boolean goalReached() {
        return goal.meanReward() > 0 && windowMean() >= goal.meanReward();
    }

    private double meanOfLast(int count) {
        List<StepRow> all = List.copyOf(steps);
        return all.subList(Math.max(0, all.size() - count), all.size()).stream()
                .mapToDouble(StepRow::reward)
                .average()
                .orElse(Double.NaN);
    }

    RunStatus status(double elapsedSeconds, String phase) throws InterruptedException {
        rates.sample(elapsedSeconds);
        if (elapsedSeconds - lagReadAt >= LAG_PERIOD_SECONDS && phase.isEmpty()) {
            lagReadAt = elapsedSeconds;
            readLag();
        }
        String awaited = clusterSilent ? "the cluster to answer" : phase;
        List<StepRow> all = List.copyOf(steps);
        StepRow last = all.isEmpty() ? null : all.get(all.size() - 1);
        double mean = meanOfLast(goal.overSteps());
        double first = all.isEmpty() ? Double.NaN : all.get(0).reward();
        double progress = goal.meanReward() <= 0 || Double.isNaN(mean)
                ? 0
                : goal.meanReward() <= first ? 1 : (mean - first) / (goal.meanReward() - first);
        return new RunStatus(
                runId,
                elapsedSeconds,
                awaited,
                goal.meanReward() > 0 ? goal.meanReward() : Double.NaN,
                Math.max(0, Math.min(1, progress)),
                all.size(),
                maxSteps,
                last == null ? 0 : last.version(),
                all.stream().map(StepRow::reward).toList(),
                mean,
                last,
                starvedInARow(all),
                idleStages.get().stream().map(IdleStages.Idle::sentence).toList(),
                rates.tokensPerSecond(),
                rates.idle(),
                lag,
                rates.serving(),
                rates.unserved(),
                alarms.get(),
                evaluations.get(),
                rates.lost());
    }

    private static long starvedInARow(List<StepRow> steps) {
        int unstarved = steps.size();
        while (unstarved > 0 && steps.get(unstarved - 1).starved()) {
            unstarved--;
        }
        return (long) steps.size() - unstarved;
    }

    private void readLag() throws InterruptedException {
        try {
            lag = consumerLag.read();
            clusterSilent = false;
        } catch (ExecutionException | TimeoutException e) {
            LOG.warn("the lag cannot be read: {}", e.toString());
            lag = Map.of(); // shown as unknown, not as the last value
            clusterSilent = true;
        }
    }
}
