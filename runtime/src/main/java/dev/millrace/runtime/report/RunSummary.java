package dev.millrace.runtime.report;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.runtime.evaluation.EvaluationJson;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.stages.IdleStages;
import java.util.List;
import java.util.Map;

/**
 * Results of a run, as in summary.json.
 *
 * @param steps all committed steps of the run, including earlier invocations
 * @param idleStages stages that had not acted for that many steps at the end
 * @param tokens generated, scored and trained over the whole run, policy tokens only
 * @param evaluations of the policy on held-out prompts, by version
 */
public record RunSummary(
        String runId,
        List<StepRow> steps,
        List<IdleStages.Idle> idleStages,
        Tokens tokens,
        Balance balance,
        Evaluations evaluations,
        Invocation invocation) {

    /** Policy tokens over a whole run. */
    public record Tokens(long generated, long scored, long trained) {}

    /**
     * The part of a run between a start and an end.
     *
     * @param newSteps how many steps it made
     * @param secondsToFirstStep from the start of the JVM to its first committed step; NaN if it made none
     * @param secondsTotal wall-clock
     * @param idle fraction of the wall-clock in which a role waited for input, by role
     * @param alarms those active at the end
     * @param goalReached whether the run stopped because its goal was reached
     */
    public record Invocation(
            int newSteps,
            double secondsToFirstStep,
            double secondsTotal,
            Map<String, Double> idle,
            List<Alarm> alarms,
            boolean goalReached,
            String stoppedBecause) {}

    /** The version of the newest step; 0 if there is none. */
    public long policyVersion() {
        return steps.isEmpty() ? 0 : steps.get(steps.size() - 1).version();
    }

    /**
     * The version with the highest reward: on held-out prompts if there are evaluations, otherwise the newest of the
     * {@value Rewards#WINDOW} steps with the highest mean; 0 without steps.
     */
    public long bestVersion() {
        return evaluations
                .best()
                .map(VersionEvaluation::getVersion)
                .orElseGet(
                        () -> Rewards.bestWindowEnd(steps).map(StepRow::version).orElse(0L));
    }

    /** Staleness and off-policy figures of the run. */
    public StepFiguresSummary figures() {
        return StepFiguresSummary.of(steps);
    }

    /** The summary as JSON; the names are a contract. */
    public ObjectNode json() {
        Rewards rewards = Rewards.over(steps);
        ObjectNode json = new ObjectMapper().createObjectNode();
        json.put("run_id", runId).put("steps", steps.size()).put("policy_version", policyVersion());
        ObjectNode seconds = json.putObject("seconds");
        if (Double.isNaN(invocation.secondsToFirstStep())) {
            seconds.putNull("to_first_step");
        } else {
            seconds.put("to_first_step", invocation.secondsToFirstStep());
        }
        seconds.put("total", invocation.secondsTotal());
        json.putObject("reward")
                .put("first", rewards.first())
                .put("best", rewards.best())
                .put("last", rewards.last());
        json.putObject("tokens")
                .put("generated", tokens.generated())
                .put("scored", tokens.scored())
                .put("trained", tokens.trained());
        ObjectNode rollouts = json.putObject("rollouts");
        Tally all = balance.all();
        rollouts.put("generated", all.generated()).put("trained", all.trained()).put("masked", all.maskedInAll());
        ObjectNode dropped = rollouts.putObject("dropped");
        all.dropped().forEach(dropped::put);
        rollouts.put("dead_lettered", all.deadLetteredInAll())
                .put("in_flight", all.inFlight() + all.unfinished().expired())
                .put("superseded", all.unfinished().superseded());
        rollouts.put("adds_up", balance.addsUp());
        if (balance.contradictionCount() > 0) {
            balance.contradictions().forEach(rollouts.putArray("contradictions")::add);
        }
        figures().addTo(json);
        ObjectNode withoutEffect = json.putObject("idle_stages");
        idleStages.forEach(stage -> withoutEffect.put(stage.stage(), stage.steps()));
        ObjectNode idleJson = json.putObject("idle");
        invocation.idle().forEach(idleJson::put);
        ArrayNode evaluated = json.putArray("evaluations");
        evaluations.onSamePrompts().forEach(evaluation -> evaluated.add(EvaluationJson.row(evaluation)));
        ArrayNode alarmsJson = json.putArray("alarms");
        invocation
                .alarms()
                .forEach(alarm -> alarmsJson
                        .addObject()
                        .put("name", alarm.name())
                        .put("subject", alarm.subject())
                        .put("since_ms", alarm.sinceMs())
                        .put("sentence", alarm.sentence())
                        .put("remedy", alarm.remedy()));
        json.put("goal_reached", invocation.goalReached()).put("stopped_because", invocation.stoppedBecause());
        return json;
    }
}
