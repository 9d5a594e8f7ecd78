package dev.millrace.audit.doctor;

import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Fix;
import dev.millrace.log.alarm.Alarm;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.stages.IdleStages;
import dev.millrace.stages.StageReports;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Judges an examination. Pure and thread-safe; each rule is a method, and says nothing where nothing is wrong.
 *
 * <p>What is judged is the examination's epoch; the ledger has to add up over all of them. Rules about training look at the last {@value #WINDOW} steps. Bounds are those at which a person should look, not at
 * which anything is masked or stopped.
 */
public final class Doctor {
    static final int WINDOW = 10;
    private static final String OFF_POLICY = "off policy";
    private static final double LOW_ESS = 0.3;
    private static final double MANY_STALE = 0.2;
    private static final double MANY_MASKED = 0.5;
    /** Where the survey says that only the systems help. */
    private static final double SOME_TOKENS_MASKED = 0.25;
    /** Steps in a row that leave the weights as they are. */
    private static final int FROZEN = 10;

    private static final double MANY_DROPPED = 0.1;
    private static final double MANY_REFUSED = 0.01;
    private static final double MANY_ZERO = 0.5;
    private static final double SHORT_ANSWERS = 0.8;
    private static final long SILENT_MS = 60_000;
    private static final long STALLED_MS = 120_000;
    private static final long VERSIONS_BEHIND = 4;

    /** What there is to say, most important first. */
    public List<Finding> findings(Examination examination) {
        List<Finding> findings = new ArrayList<>();
        ledger(examination.account().balance(), findings);
        alarms(examination.alarms(), findings);
        examination.offPolicy().ifPresent(diagnosis -> findings.addAll(offPolicy(diagnosis)));
        progress(examination, findings);
        serving(examination, findings);
        lost(examination, findings);
        frozen(examination.steps(), findings);
        training(examination.steps(), findings);
        idle(examination.steps(), findings);
        findings.sort(Comparator.comparing(Finding::weight)); // stable
        return findings;
    }

    private static void ledger(Balance balance, List<Finding> findings) {
        if (!balance.addsUp()) {
            findings.add(
                    new Finding(
                            Weight.BROKEN,
                            "ledger",
                            say(
                                    "the ledger does not add up: %,d contradictions, the first: %s",
                                    balance.contradictionCount(),
                                    balance.contradictions().isEmpty()
                                            ? "the sum"
                                            : balance.contradictions().get(0)),
                            "look at 'millrace ledger' and trace what it names; two topologies or learners may write to one run"));
        }
        balance.gaps()
                .forEach(gap -> findings.add(new Finding(
                        Weight.NOTE,
                        "retention",
                        gap,
                        "raise topics.record_retention_ms, or export what is to be kept")));
        if (!balance.copies().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "copies",
                    "records are on the log once more, and count once: " + reasons(balance.copies()),
                    "somebody else than the run's roles writes to these topics; nothing of the run is wrong by it"));
        }
    }

    private static void alarms(List<Alarm> alarms, List<Finding> findings) {
        alarms.forEach(alarm -> findings.add(new Finding(
                Weight.SICK, "alarm " + alarm.name(), alarm.subject() + ": " + alarm.sentence(), alarm.remedy())));
    }

    /** What the decision tree of the corrections says: every branch that holds, by name; then mistakes in reading or answering it. */
    public static List<Finding> offPolicy(Diagnosis diagnosis) {
        List<Finding> findings = new ArrayList<>();
        diagnosis.branches().stream()
                .filter(branch -> branch.cause() != Cause.NONE)
                .forEach(branch -> findings.add(new Finding(
                        weight(branch),
                        OFF_POLICY,
                        branch.finding(),
                        branch.fix().advice())));
        diagnosis.pitfalls().forEach(pitfall -> {
            String[] parts = pitfall.sentence().split(": ", 2);
            findings.add(new Finding(Weight.WEAK, OFF_POLICY, parts[0], parts[1]));
        });
        return findings;
    }

    private static Weight weight(Branch branch) {
        return switch (branch.cause()) {
            case ENGINE_MISMATCH -> branch.fix() == Fix.ALIGN_ENGINES ? Weight.SICK : Weight.BROKEN; // other tokens
            case VARIANCE_BLOW_UP, LENGTH_SURGE, CLIP_SATURATION -> Weight.SICK;
            case POLICY_STALENESS, TOKEN_DRIFT -> Weight.WEAK;
            case NONE -> Weight.NOTE;
        };
    }

    /** A run that has ended has nothing in flight that anybody waits for; one that hangs has. */
    private static void progress(Examination examination, List<Finding> findings) {
        boolean alive = isAlive(examination);
        List<TrainingStep> steps = examination.steps();
        long lastMs =
                steps.isEmpty() ? Long.MIN_VALUE : steps.get(steps.size() - 1).getFinishedAtMs();
        if (alive && !steps.isEmpty() && examination.atMs() - lastMs > STALLED_MS) {
            findings.add(new Finding(
                    Weight.SICK,
                    "progress",
                    say(
                            "the last step, to version %d, was %,d s ago, and servers are up",
                            steps.get(steps.size() - 1).getVersion(), (examination.atMs() - lastMs) / 1000),
                    waitsWhere(examination.tally())));
        }
        if (alive) {
            examination.account().balance().oldestWaiting().stream()
                    .filter(waiting -> examination.atMs() - waiting.sinceMs() > STALLED_MS)
                    .forEach(waiting -> findings.add(new Finding(
                            Weight.WEAK,
                            "waiting",
                            say(
                                    "rollout %s has waited for %s for %,d s",
                                    waiting.rolloutId(),
                                    waiting.stage(),
                                    (examination.atMs() - waiting.sinceMs()) / 1000),
                            "millrace trace " + waiting.rolloutId())));
        }
        if (!examination.lags().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "lag",
                    "records behind: "
                            + examination.lags().entrySet().stream()
                                    .sorted(Map.Entry.comparingByKey())
                                    .map(e -> say("%s %,d", e.getKey(), e.getValue()))
                                    .reduce((a, b) -> a + ", " + b)
                                    .orElse(""),
                    ""));
        }
    }

    private static String waitsWhere(Tally all) {
        if (all.waitingForStep() > 0) {
            return "batches wait for the learner: is it up?";
        }
        if (all.waitingForBatch() > all.waitingForScore()) {
            return "scored rollouts wait for their group or batch: is the topology up, and are groups complete?";
        }
        return all.waitingForScore() > 0
                ? "rollouts wait for scores: is a scorer up?"
                : "nothing is in flight: is a generator up, and admission?";
    }

    private static void serving(Examination examination, List<Finding> findings) {
        long newest = examination.newestVersion().orElse(0);
        for (Serving server : examination.serving()) {
            long silentMs = examination.atMs() - server.getHeartbeatMs();
            if (server.getLeft()) {
                continue; // in order
            }
            if (silentMs > SILENT_MS) {
                if (isAlive(examination)) {
                    findings.add(new Finding(
                            Weight.WEAK,
                            "serving",
                            say(
                                    "%s %s was last heard of %,d s ago",
                                    lower(server), server.getServerId(), silentMs / 1000),
                            "if it is not meant to be down, start it again"));
                }
            } else if (server.getRole() != ServerRole.EVALUATOR // which stays with a version for as long as that takes
                    && newest - server.getVersion() > VERSIONS_BEHIND) {
                findings.add(new Finding(
                        Weight.SICK,
                        "serving",
                        say(
                                "%s %s serves version %d, the newest is %d",
                                lower(server), server.getServerId(), server.getVersion(), newest),
                        "what it makes is stale when it comes: look at its log, or give it fewer tokens at once"));
            }
        }
    }

    private static boolean isAlive(Examination examination) {
        return examination.serving().stream()
                .anyMatch(server -> !server.getLeft() && examination.atMs() - server.getHeartbeatMs() < SILENT_MS);
    }

    private static String lower(Serving server) {
        return server.getRole().name().toLowerCase(Locale.ROOT);
    }

    private static void lost(Examination examination, List<Finding> findings) {
        Balance balance = examination.account().balance();
        Tally all = examination.tally();
        if (share(all.deadLetteredInAll(), all.generated()) > MANY_REFUSED) {
            findings.add(new Finding(
                    Weight.SICK,
                    "refused",
                    say(
                            "%,d of %,d rollouts were refused: %s",
                            all.deadLetteredInAll(), all.generated(), reasons(all.deadLettered())),
                    "millrace dead-letters list; replay puts them back once the cause is mended"));
        } else if (all.deadLetteredInAll() > 0 || !balance.otherDeadLetters().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "refused",
                    say(
                            "%,d rollouts (%s) and %,d other records were refused",
                            all.deadLetteredInAll(),
                            reasons(all.deadLettered()),
                            balance.otherDeadLetters().values().stream()
                                    .mapToLong(Long::longValue)
                                    .sum()),
                    "millrace dead-letters list"));
        }
        if (share(all.droppedInAll(), all.generated()) > MANY_DROPPED) {
            findings.add(new Finding(
                    Weight.WEAK,
                    "dropped",
                    say(
                            "%,d of %,d rollouts left before a batch: %s",
                            all.droppedInAll(), all.generated(), reasons(all.dropped())),
                    "what was sampled for them is lost; the reason says which deadline or limit"));
        }
        if (share(all.maskedInAll(), all.trained() + all.maskedInAll()) > MANY_MASKED) {
            findings.add(new Finding(
                    Weight.WEAK,
                    "masked",
                    say(
                            "%,d of %,d batched rollouts have no token left to train on: %s",
                            all.maskedInAll(), all.trained() + all.maskedInAll(), reasons(all.masked())),
                    "loosen the stage that masks most, or lower admission.eta"));
        }
    }

    /** A run whose weights stay as they are makes versions, spends what it spends, and learns nothing. */
    private static void frozen(List<TrainingStep> steps, List<Finding> findings) {
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
                    say(
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
                    say("%d of the last %d steps had no token left to train on", without, last.size()),
                    "the stage that masks most says why: loosen it, or lower admission.eta"));
        }
    }

    /** Of the tokens that reached the first stage, how many nobody trains on. */
    private static void trainedShare(List<TrainingStep> last, List<Finding> findings) {
        long seen = 0;
        long trained = 0;
        for (TrainingStep step : last) {
            OptionalLong ofStep = StageReports.of(step).stream()
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
                    say(
                            "the last %d steps trained on %.0f %% of their tokens: %,d of %,d",
                            last.size(), 100 * (1 - masked), trained, seen),
                    "no correction is cheaper than fresher data or engines that agree once a quarter is masked:"
                            + " lower admission.eta, or look at the stage that masks most"));
        }
    }

    /** Over the whole run, since a stage that acted once is no setting without an effect until much later. */
    private static void idle(List<TrainingStep> steps, List<Finding> findings) {
        IdleStages stages = new IdleStages(IdleStages.STEPS);
        steps.forEach(stages::add);
        stages.idle()
                .forEach(idle -> findings.add(new Finding(
                        Weight.NOTE,
                        "idle stage",
                        idle.sentence(),
                        "if it is not there as a guard, take it out or set it so that it acts")));
    }

    private static List<TrainingStep> last(List<TrainingStep> steps) {
        return steps.subList(Math.max(0, steps.size() - WINDOW), steps.size());
    }

    private static void training(List<TrainingStep> steps, List<Finding> findings) {
        List<TrainingStep> last = last(steps);
        trainedShare(last, findings);
        known(last, TrainingStep::getEssRatio).ifPresent(ess -> {
            if (ess < LOW_ESS) {
                findings.add(new Finding(
                        Weight.SICK,
                        "ESS",
                        say("the effective sample size was %.2f of the batch over the last %d steps", ess, last.size()),
                        "few rollouts decide about each step: lower admission.eta, or scale the step by it"));
            }
        });
        ratio(last, "staleness.tokens_changed", "staleness.tokens_seen").ifPresent(share -> {
            if (share > MANY_STALE) {
                findings.add(new Finding(
                        Weight.WEAK,
                        "staleness",
                        say(
                                "%.0f %% of the tokens of the last %d steps were masked as stale",
                                100 * share, last.size()),
                        "lower admission.eta, or give the learner more to do its steps faster"));
            }
        });
        known(last, TrainingStep::getStalenessInFlightMean)
                .ifPresent(inFlight -> known(last, TrainingStep::getStalenessInQueueMean)
                        .ifPresent(inQueue -> findings.add(new Finding(
                                Weight.NOTE,
                                "staleness",
                                say(
                                        "%.2f versions in flight and %.2f in the queue on average, over the last %d steps",
                                        inFlight, inQueue, last.size()),
                                ""))));
        ratio(last, "grpo.zero_sequences", "grpo.sequences_seen").ifPresent(share -> {
            if (share > MANY_ZERO) {
                findings.add(new Finding(
                        Weight.WEAK,
                        "zero variance",
                        say(
                                "%.0f %% of the rollouts of the last %d steps had an advantage of 0",
                                100 * share, last.size()),
                        "all samples of their groups earned the same: take prompts that are neither too easy nor too hard,"
                                + " or topology.groups.zero_variance=drop or resample"));
            }
        });
        metric(last, "order.length_bias").ifPresent(bias -> {
            if (bias < SHORT_ANSWERS) {
                findings.add(new Finding(
                        Weight.WEAK,
                        "length",
                        say("batched rollouts had %.2f times the length of those that were ready or waiting", bias),
                        "short answers are trained on first: topology.batch.order=submission"));
            }
        });
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

    private static double share(long part, long whole) {
        return whole == 0 ? 0 : (double) part / whole;
    }

    private static String reasons(Map<String, Long> counts) {
        return counts.isEmpty()
                ? "none"
                : counts.entrySet().stream()
                        .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
                        .map(e -> say("%s %,d", e.getKey(), e.getValue()))
                        .reduce((a, b) -> a + ", " + b)
                        .orElseThrow();
    }

    private static String say(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
