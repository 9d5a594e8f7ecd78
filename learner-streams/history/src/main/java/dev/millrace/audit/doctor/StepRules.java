package dev.millrace.audit.doctor;

import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.stages.IdleStages;
import dev.millrace.stages.StageReports;
import java.util.List;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** What the last steps say of themselves. Pure; what was not computed is judged by nobody. */
final class StepRules {
    static final int WINDOW = 10;
    private static final double LOW_ESS = 0.3;
    private static final double MANY_STALE = 0.2;
    private static final double MANY_MASKED = 0.5;
    /** Where the survey says that only the systems help. */
    private static final double SOME_TOKENS_MASKED = 0.25;
    /** Steps in a row that leave the weights as they are. */
    private static final int FROZEN = 10;

    /** It sees every token once in each epoch, so that what it saw is no batch. */
    private static final String OBJECTIVE = "objective";

    private static final double MANY_ZERO = 0.5;
    private static final double SHORT_ANSWERS = 0.8;

    private StepRules() {}

    /** A run whose weights stay as they are makes versions, spends what it spends, and learns nothing. */
    static void frozen(List<TrainingStep> steps, List<Finding> findings) {
        int still = 0; // steps at the end that left the weights as they were
        int starved = 0;
        for (int i = steps.size() - 1; i > 0; i--) {
            TrainingStep step = steps.get(i);
            if (step.getTokensTrained() > 0
                    && !step.getWeightsSha256().equals(steps.get(i - 1).getWeightsSha256())) {
                break;
            }
            still++;
            starved += step.getTokensTrained() == 0 ? 1 : 0;
        }
        if (still >= FROZEN) {
            findings.add(new Finding(
                    Weight.SICK,
                    "frozen",
                    Finding.say(
                            "the last %d steps left the weights as they were; %s",
                            still,
                            starved == 0
                                    ? "all of them had tokens to train on"
                                    : starved + " of them had no token left to train on"),
                    starved == 0
                            ? "is the learning rate 0, or every advantage?"
                            : "the stage that masks most says why: loosen it, or lower admission.eta"));
            return;
        }
        List<TrainingStep> last = last(steps);
        long without =
                last.stream().filter(step -> step.getTokensTrained() == 0).count();
        if (without > 0) {
            findings.add(new Finding(
                    Weight.WEAK,
                    "starved",
                    (last.size() == 1 ? "" : without + " of ") + lastSteps(last) + " had no token left to train on",
                    "the stage that masks most says why: loosen it, or lower admission.eta"));
        }
    }

    static void training(List<TrainingStep> steps, List<Finding> findings) {
        List<TrainingStep> last = last(steps);
        trainedShare(last, findings);
        known(last, TrainingStep::getEssRatio).ifPresent(ess -> {
            if (ess < LOW_ESS) {
                findings.add(new Finding(
                        Weight.SICK,
                        "ESS",
                        Finding.say("the effective sample size was %.2f of the batch over %s", ess, lastSteps(last)),
                        "few rollouts decide about each step: lower admission.eta, or scale the step by it"));
            }
        });
        ratio(last, "staleness.tokens_changed", "staleness.tokens_seen").ifPresent(share -> {
            if (share > MANY_STALE) {
                findings.add(new Finding(
                        Weight.WEAK,
                        "staleness",
                        Finding.say("%.0f %% of the tokens of %s were masked as stale", 100 * share, lastSteps(last)),
                        "lower admission.eta, or give the learner more to do its steps faster"));
            }
        });
        known(last, TrainingStep::getStalenessInFlightMean)
                .ifPresent(inFlight -> known(last, TrainingStep::getStalenessInQueueMean)
                        .ifPresent(inQueue -> findings.add(new Finding(
                                Weight.NOTE,
                                "staleness",
                                Finding.say(
                                        "%.2f versions in flight and %.2f in the queue on average, over %s",
                                        inFlight, inQueue, lastSteps(last)),
                                ""))));
        ratio(last, "grpo.zero_sequences", "grpo.sequences_seen").ifPresent(share -> {
            if (share > MANY_ZERO) {
                findings.add(new Finding(
                        Weight.WEAK,
                        "zero variance",
                        Finding.say(
                                "%.0f %% of the rollouts of %s had an advantage of 0", 100 * share, lastSteps(last)),
                        "all samples of their groups earned the same: take prompts that are neither too easy nor too hard,"
                                + " or topology.groups.zero_variance=drop or resample"));
            }
        });
        metric(last, "order.length_bias").ifPresent(bias -> {
            if (bias < SHORT_ANSWERS) {
                findings.add(new Finding(
                        Weight.WEAK,
                        "length",
                        Finding.say(
                                "batched rollouts had %.2f times the length of those that were ready or waiting", bias),
                        "short answers are trained on first: topology.batch.order=submission"));
            }
        });
    }

    /** Of the tokens that reached the first stage, how many nobody trains on. */
    private static void trainedShare(List<TrainingStep> last, List<Finding> findings) {
        long seen = 0;
        long trained = 0;
        for (TrainingStep step : last) {
            OptionalLong ofStep = StageReports.of(step).stream()
                    .filter(report -> !report.getStage().equals(OBJECTIVE))
                    .mapToLong(StageReport::getTokensSeen)
                    .max();
            if (ofStep.isPresent()) {
                seen += ofStep.getAsLong();
                trained += Math.min(step.getTokensTrained(), ofStep.getAsLong());
            }
        }
        double masked = seen == 0 ? 0 : 1 - (double) trained / seen;
        if (masked > SOME_TOKENS_MASKED) {
            findings.add(new Finding(
                    masked > MANY_MASKED ? Weight.SICK : Weight.WEAK,
                    "masked tokens",
                    Finding.say(
                            "%s trained on %.0f %% of %s tokens: %,d of %,d",
                            lastSteps(last), 100 * (1 - masked), last.size() == 1 ? "its" : "their", trained, seen),
                    "no correction is cheaper than fresher data or engines that agree once a quarter is masked:"
                            + " lower admission.eta, or look at the stage that masks most"));
        }
    }

    /** Over the whole run, since a stage that acted once is no setting without an effect until much later. */
    static void idle(List<TrainingStep> steps, List<Finding> findings) {
        IdleStages stages = new IdleStages(IdleStages.STEPS);
        steps.forEach(stages::add);
        stages.idle()
                .forEach(idle -> findings.add(new Finding(
                        Weight.NOTE,
                        "idle stage",
                        idle.sentence(),
                        "if it is not there as a guard, take it out or set it so that it acts")));
    }

    private static String lastSteps(List<TrainingStep> last) {
        return last.size() == 1 ? "the only step" : Finding.say("the last %d steps", last.size());
    }

    private static List<TrainingStep> last(List<TrainingStep> steps) {
        return steps.subList(Math.max(0, steps.size() - WINDOW), steps.size());
    }

    /** Mean over the steps that have the number; a starved one has none. */
    private static OptionalDouble known(List<TrainingStep> steps, Function<TrainingStep, @Nullable Double> number) {
        return steps.stream()
                .map(number)
                .filter(Objects::nonNull)
                .mapToDouble(Double::doubleValue)
                .average();
    }

    /** The learner's own stages, or, where it did not decide anew about something, the batch's. */
    private static OptionalDouble metric(List<TrainingStep> steps, String name) {
        return steps.stream()
                .map(TrainingStep::getMetrics)
                .map(metrics -> metrics.getOrDefault("stage." + name, metrics.get("recorded.stage." + name)))
                .filter(Objects::nonNull)
                .mapToDouble(Double::doubleValue)
                .average();
    }

    private static OptionalDouble ratio(List<TrainingStep> steps, String part, String whole) {
        OptionalDouble of = metric(steps, whole);
        return of.isEmpty() || of.getAsDouble() == 0
                ? OptionalDouble.empty()
                : OptionalDouble.of(metric(steps, part).orElse(0) / of.getAsDouble());
    }
}
