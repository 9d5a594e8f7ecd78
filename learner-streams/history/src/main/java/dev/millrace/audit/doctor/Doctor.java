package dev.millrace.audit.doctor;

import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Fix;
import dev.millrace.corrections.diagnostics.MeanInterval;
import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.schemas.EvaluatedPrompt;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.stages.IdleStages;
import dev.millrace.stages.StageReports;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Judges an examination of an epoch; the ledger covers all epochs. Pure and thread-safe.
 *
 * <p>Training rules look at the last ten steps. Bounds say when a person should look, not when to mask or stop.
 */
public final class Doctor {
    /** Subject of findings about stages that change nothing. */
    public static final String IDLE_STAGE = "idle stage";

    private static final String OFF_POLICY = "off policy";

    private static final double MANY_DROPPED = 0.1;
    private static final double MANY_REFUSED = 0.01;
    private static final double MANY_MASKED = 0.5;

    private static final long SILENT_MS = 60_000;
    private static final long STALLED_MS = 120_000;
    private static final long VERSIONS_BEHIND = 4;

    private static final int WINDOW = 10;
    private static final double LOW_ESS = 0.3;
    private static final double MANY_STALE = 0.2;
    /** Beyond this share only fixing the systems helps. */
    private static final double SOME_TOKENS_MASKED = 0.25;
    /** Consecutive steps without a weight change. */
    private static final int FROZEN = 10;
    /** The objective sees every token once per epoch, so its counts are no batch. */
    private static final String OBJECTIVE = "objective";

    private static final double MANY_ZERO = 0.5;
    private static final double SHORT_ANSWERS = 0.8;

    public List<Finding> findings(Examination examination) {
        List<Finding> findings = new ArrayList<>();
        ledger(examination.account().balance(), findings);
        alarms(examination.observed().alarms(), findings);
        examination.offPolicy().ifPresent(diagnosis -> findings.addAll(offPolicy(diagnosis)));
        progress(examination, findings);
        strayVersion(examination, findings);
        serving(examination, findings);
        lost(examination, findings);
        frozen(examination.steps(), findings);
        training(examination.steps(), findings);
        HeldOutRules.heldOut(examination, findings);
        idle(examination.steps(), findings);
        findings.sort(Comparator.comparing(Finding::weight)); // stable
        return findings;
    }

    private static void alarms(List<Alarm> alarms, List<Finding> findings) {
        alarms.forEach(alarm -> findings.add(new Finding(
                Weight.CRITICAL, "alarm " + alarm.name(), alarm.subject() + ": " + alarm.sentence(), alarm.remedy())));
    }

    /** Branches of the correction decision tree that hold, then mistakes in reading or answering it. */
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
            findings.add(new Finding(Weight.WARNING, OFF_POLICY, parts[0], parts[1]));
        });
        return findings;
    }

    private static Weight weight(Branch branch) {
        return switch (branch.cause()) {
            case ENGINE_MISMATCH -> branch.fix() == Fix.ALIGN_ENGINES ? Weight.CRITICAL : Weight.BROKEN; // other tokens
            case VARIANCE_BLOW_UP, LENGTH_SURGE, CLIP_SATURATION -> Weight.CRITICAL;
            case POLICY_STALENESS, TOKEN_DRIFT -> Weight.WARNING;
            case NONE -> Weight.NOTE;
        };
    }

    /** Findings from held-out evaluations. Pure. */
    static final class HeldOutRules {
        /** Nats per token: e times less likely under the start than the start's own text. */
        static final double START_LOG_PROB_FALL = 1;

        private static final double STANDARD_ERRORS = 2;

        private HeldOutRules() {}

        static void heldOut(Examination examination, List<Finding> findings) {
            Evaluations evaluations = examination.heldOut().evaluations();
            fallen(evaluations, examination.steps(), findings);
            unlikelyText(evaluations, findings);
            if (!examination.heldOut().isBestKept()) {
                VersionEvaluation best = evaluations.best().orElseThrow();
                findings.add(new Finding(
                        Weight.WARNING,
                        "best version",
                        Finding.say(
                                "version %d, the best on held-out prompts (reward %.3f), was deleted from the log",
                                best.getVersion(), best.getRewardMean()),
                        "the topic's retention.bytes deleted it; topics.weights_retention_bytes=-1 keeps"
                                + " the next one"));
            }
        }

        /**
         * Last version against the best, per prompt. One half of the prompts chooses the best, the other half measures
         * the fall, to avoid selection bias.
         */
        private static void fallen(Evaluations evaluations, List<TrainingStep> steps, List<Finding> findings) {
            List<VersionEvaluation> all = evaluations.onSamePrompts();
            if (all.size() < 2) {
                return;
            }
            VersionEvaluation last = all.get(all.size() - 1);
            VersionEvaluation then = all.stream()
                    .max(Comparator.comparingDouble((VersionEvaluation of) -> mean(of))
                            .thenComparing(VersionEvaluation::getVersion, Comparator.reverseOrder()))
                    .orElseThrow();
            double[] differences = differences(then, last);
            MeanInterval fall = MeanInterval.of(differences);
            if (differences.length == 0 || !fall.isKnown() || !(fall.low() > 0)) {
                return;
            }
            Optional<Double> rise = rise(steps, then.getVersion());
            findings.add(
                    new Finding(
                            rise.isPresent() ? Weight.CRITICAL : Weight.WARNING,
                            "held out",
                            Finding.say(
                                            "the reward on held-out prompts is %.3f lower at version %d than at version %d (%.3f to %.3f with 95 %%,"
                                                    + " over the %d prompts that did not choose that version)",
                                            fall.mean(),
                                            last.getVersion(),
                                            then.getVersion(),
                                            fall.low(),
                                            fall.high(),
                                            differences.length)
                                    + rise.map(by -> Finding.say(", while the reward in training rose by %.3f", by))
                                            .orElse(""),
                            (rise.isPresent() ? "it overfits its training prompts or their reward: " : "")
                                    + "millrace evaluate --version best shows its evaluation, and millrace rollback --to-version "
                                    + then.getVersion()
                                    + " continues from it; add prompts or a KL term against the start, or lower the learning rate"));
        }

        /** Mean reward over every second prompt; −∞ without one. */
        private static double mean(VersionEvaluation of) {
            List<EvaluatedPrompt> prompts = of.getPrompts();
            double sum = 0;
            int count = 0;
            for (int i = 0; i < prompts.size(); i += 2) {
                if (prompts.get(i).getSamples() > 0) {
                    sum += reward(prompts.get(i));
                    count++;
                }
            }
            return count == 0 ? Double.NEGATIVE_INFINITY : sum / count;
        }

        /** Advantage of the earlier version on prompts that did not choose it and that both answered. */
        private static double[] differences(VersionEvaluation earlier, VersionEvaluation later) {
            List<Double> differences = new ArrayList<>();
            int prompts =
                    Math.min(earlier.getPrompts().size(), later.getPrompts().size());
            for (int i = 1; i < prompts; i += 2) {
                EvaluatedPrompt before = earlier.getPrompts().get(i);
                EvaluatedPrompt after = later.getPrompts().get(i);
                if (before.getSamples() > 0 && after.getSamples() > 0) {
                    differences.add(reward(before) - reward(after));
                }
            }
            return differences.stream().mapToDouble(Double::doubleValue).toArray();
        }

        private static double reward(EvaluatedPrompt prompt) {
            return prompt.getRewardSum() / prompt.getSamples();
        }

        /** Reward gain of the last steps over those up to a version; empty if it may be chance. */
        private static Optional<Double> rise(List<TrainingStep> steps, long version) {
            List<TrainingStep> upTo =
                    steps.stream().filter(step -> step.getVersion() <= version).toList();
            double[] before = rewards(
                    upTo.size() < WINDOW
                            ? steps.subList(0, Math.min(WINDOW, steps.size()))
                            : upTo.subList(upTo.size() - WINDOW, upTo.size()));
            double[] now = rewards(steps.subList(Math.max(0, steps.size() - WINDOW), steps.size()));
            if (before.length < 2 || now.length < 2) {
                return Optional.empty();
            }
            double by = mean(now) - mean(before);
            double error = Math.sqrt(variance(before) / before.length + variance(now) / now.length);
            return by > 0 && by > STANDARD_ERRORS * error ? Optional.of(by) : Optional.empty();
        }

        private static double[] rewards(List<TrainingStep> steps) {
            return steps.stream().mapToDouble(TrainingStep::getRewardMean).toArray();
        }

        private static double mean(double[] values) {
            double sum = 0;
            for (double value : values) {
                sum += value;
            }
            return sum / values.length;
        }

        private static double variance(double[] values) {
            double mean = mean(values);
            double squares = 0;
            for (double value : values) {
                squares += (value - mean) * (value - mean);
            }
            return squares / (values.length - 1);
        }

        private static void unlikelyText(Evaluations evaluations, List<Finding> findings) {
            List<VersionEvaluation> known = evaluations.onSamePrompts().stream()
                    .filter(of -> of.getStartLogProb() != null)
                    .toList();
            if (known.size() < 2) {
                return;
            }
            VersionEvaluation first = known.get(0);
            VersionEvaluation last = known.get(known.size() - 1);
            double fall = startLogProb(first) - startLogProb(last);
            if (fall > START_LOG_PROB_FALL) {
                findings.add(new Finding(
                        Weight.WARNING,
                        "text",
                        Finding.say(
                                "under the start model, a token of version %d has a log-prob of %.3f on average,"
                                        + " %.3f nats below that of version %d (more than %.0f)",
                                last.getVersion(), startLogProb(last), fall, first.getVersion(), START_LOG_PROB_FALL),
                        "the policy may be hacking the reward: read samples (millrace view), and add a KL term"
                                + " against the start (algorithm.kl)"));
            }
        }

        private static double startLogProb(VersionEvaluation of) {
            Double known = of.getStartLogProb();
            return known == null ? Double.NaN : known;
        }
    }

    private static void ledger(Balance balance, List<Finding> findings) {
        if (!balance.addsUp()) {
            findings.add(new Finding(
                    Weight.BROKEN,
                    "ledger",
                    Finding.say(
                            "the ledger does not add up: %s, the first: %s",
                            Finding.count(balance.contradictionCount(), "contradiction"),
                            balance.contradictions().isEmpty()
                                    ? "the sum"
                                    : balance.contradictions().get(0)),
                    "run 'millrace ledger' and 'millrace trace' on the rollouts it names; two"
                            + " topologies or learners may write to one run"));
        }
        balance.gaps()
                .forEach(gap -> findings.add(new Finding(
                        Weight.NOTE, "retention", gap, "raise topics.record_retention_ms, or export the run")));
        if (!balance.unmatched().copies().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "copies",
                    "duplicate records, each counted once: "
                            + reasons(balance.unmatched().copies()),
                    "a foreign process writes to these topics; the run is not affected"));
        }
        if (!balance.unmatched().strays().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "strays",
                    "records that name no offset of the rollouts topic, not counted: "
                            + reasons(balance.unmatched().strays()),
                    "a foreign process writes to these topics, or the topic was recreated with fewer partitions"
                            + " (see millrace repair)"));
        }
    }

    private static void lost(Examination examination, List<Finding> findings) {
        Balance balance = examination.account().balance();
        Tally all = examination.tally();
        if (share(all.deadLetteredInAll(), all.generated()) > MANY_REFUSED) {
            findings.add(new Finding(
                    Weight.CRITICAL,
                    "refused",
                    Finding.say(
                            "%,d of %,d rollouts were refused: %s",
                            all.deadLetteredInAll(), all.generated(), reasons(all.deadLettered())),
                    "see millrace dead-letters list; after fixing the cause, millrace dead-letters redrive"));
        } else if (all.deadLetteredInAll() > 0
                || !balance.unmatched().otherDeadLetters().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "refused",
                    Finding.say(
                            "%s (%s) and %s were refused",
                            Finding.count(all.deadLetteredInAll(), "rollout"),
                            reasons(all.deadLettered()),
                            Finding.count(
                                    balance.unmatched().otherDeadLetters().values().stream()
                                            .mapToLong(Long::longValue)
                                            .sum(),
                                    "other record")),
                    "millrace dead-letters list"));
        }
        if (share(all.droppedInAll(), all.generated()) > MANY_DROPPED) {
            findings.add(new Finding(
                    Weight.WARNING,
                    "dropped",
                    Finding.say(
                            "%,d of %,d rollouts were dropped before a batch: %s",
                            all.droppedInAll(), all.generated(), reasons(all.dropped())),
                    "their samples are lost; the reason names the deadline or limit"));
        }
        if (share(all.maskedInAll(), all.trained() + all.maskedInAll()) > MANY_MASKED) {
            findings.add(new Finding(
                    Weight.WARNING,
                    "masked",
                    Finding.say(
                            "%,d of %,d batched rollouts have no token left to train on: %s",
                            all.maskedInAll(), all.trained() + all.maskedInAll(), reasons(all.masked())),
                    "loosen the stage that masks most, or lower admission.eta"));
        }
    }

    private static double share(long part, long whole) {
        return whole == 0 ? 0 : (double) part / whole;
    }

    private static String reasons(Map<String, Long> counts) {
        return counts.isEmpty()
                ? "none"
                : counts.entrySet().stream()
                        .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
                        .map(e -> Finding.say("%s %,d", e.getKey(), e.getValue()))
                        .reduce((a, b) -> a + ", " + b)
                        .orElseThrow();
    }

    /** In-flight rollouts of an ended run are not waited for; those of a hanging run are. */
    private static void progress(Examination examination, List<Finding> findings) {
        boolean alive = isAlive(examination);
        List<TrainingStep> steps = examination.steps();
        long lastMs =
                steps.isEmpty() ? Long.MIN_VALUE : steps.get(steps.size() - 1).getFinishedAtMs();
        if (alive && !steps.isEmpty() && examination.observed().atMs() - lastMs > STALLED_MS) {
            findings.add(new Finding(
                    Weight.CRITICAL,
                    "progress",
                    Finding.say(
                            "the last step, to version %d, was %,d s ago, and servers are running",
                            steps.get(steps.size() - 1).getVersion(),
                            (examination.observed().atMs() - lastMs) / 1000),
                    waitsWhere(examination.tally())));
        }
        if (alive) {
            examination.account().balance().oldestWaiting().stream()
                    .filter(waiting -> examination.observed().atMs() - waiting.sinceMs() > STALLED_MS)
                    .forEach(waiting -> findings.add(new Finding(
                            Weight.WARNING,
                            "waiting",
                            Finding.say(
                                    "rollout %s has waited for %s for %,d s",
                                    waiting.rolloutId(),
                                    waiting.stage(),
                                    (examination.observed().atMs() - waiting.sinceMs()) / 1000),
                            "millrace trace " + waiting.rolloutId())));
        }
        if (!examination.observed().lags().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "lag",
                    "consumer lag in records: "
                            + examination.observed().lags().entrySet().stream()
                                    .sorted(Map.Entry.comparingByKey())
                                    .map(e -> Finding.say("%s %,d", e.getKey(), e.getValue()))
                                    .reduce((a, b) -> a + ", " + b)
                                    .orElse(""),
                    ""));
        }
    }

    private static String waitsWhere(Tally all) {
        if (all.unfinished().waitingForStep() > 0) {
            return "batches wait for the learner: is it running?";
        }
        if (all.unfinished().waitingForBatch() > all.unfinished().waitingForScore()) {
            return "scored rollouts wait for their group or batch: is the topology running, and are groups complete?";
        }
        return all.unfinished().waitingForScore() > 0
                ? "rollouts wait for scores: is a scorer running?"
                : "nothing is in flight: are a generator and admission running?";
    }

    /** A manifest behind a gap, which version readers skip. */
    private static void strayVersion(Examination examination, List<Finding> findings) {
        examination
                .strayVersion()
                .ifPresent(
                        stray -> findings.add(
                                new Finding(
                                        Weight.WARNING,
                                        "versions",
                                        Finding.say(
                                                "a manifest names version %d, and the run's chain ends with %s;"
                                                        + " it is ignored",
                                                stray,
                                                examination.newestVersion().isPresent()
                                                        ? "version "
                                                                + examination
                                                                        .newestVersion()
                                                                        .getAsLong()
                                                        : "no version"),
                                        "a process other than the run's learner writes versions: stop it; a running learner deletes the stray")));
    }

    private static void serving(Examination examination, List<Finding> findings) {
        long newest = examination.newestVersion().orElse(0);
        for (Serving server : examination.observed().serving()) {
            long silentMs = examination.observed().atMs() - server.getHeartbeatMs();
            if (server.getLeft()) {
                continue; // in order
            }
            if (silentMs > SILENT_MS) {
                if (isAlive(examination)) {
                    findings.add(new Finding(
                            Weight.WARNING,
                            "serving",
                            Finding.say(
                                    "the last heartbeat of %s %s was %,d s ago",
                                    lower(server), server.getServerId(), silentMs / 1000),
                            "restart it unless it was stopped on purpose"));
                }
            } else if (server.getRole() != ServerRole.EVALUATOR // which stays with a version for as long as that takes
                    && newest - server.getVersion() > VERSIONS_BEHIND) {
                findings.add(new Finding(
                        Weight.CRITICAL,
                        "serving",
                        Finding.say(
                                "%s %s serves version %d, the newest is %d",
                                lower(server), server.getServerId(), server.getVersion(), newest),
                        "its rollouts arrive stale: check its log, or give it fewer tokens at a time"));
            }
        }
    }

    private static boolean isAlive(Examination examination) {
        return examination.observed().serving().stream()
                .anyMatch(server ->
                        !server.getLeft() && examination.observed().atMs() - server.getHeartbeatMs() < SILENT_MS);
    }

    private static String lower(Serving server) {
        return server.getRole().name().toLowerCase(Locale.ROOT);
    }

    /** Weights that never change: versions without learning. */
    private static void frozen(List<TrainingStep> steps, List<Finding> findings) {
        int still = 0; // steps at the end that left the weights as they were
        int starved = 0;
        for (int i = steps.size() - 1; i > 0; i--) {
            TrainingStep step = steps.get(i);
            String weights = step.getWeightsSha256();
            if (step.getTokensTrained() > 0
                    && (weights.isEmpty() || !weights.equals(steps.get(i - 1).getWeightsSha256()))) {
                break; // changed, or of another system's trainer and unknown
            }
            still++;
            starved += step.getTokensTrained() == 0 ? 1 : 0;
        }
        if (still >= FROZEN) {
            findings.add(new Finding(
                    Weight.CRITICAL,
                    "frozen",
                    Finding.say(
                            "the last %d steps did not change the weights; %s",
                            still,
                            starved == 0
                                    ? "all of them had tokens to train on"
                                    : starved + " of them had no token left to train on"),
                    starved == 0
                            ? "is the learning rate 0, or every advantage?"
                            : "loosen the stage that masks most, or lower admission.eta"));
            return;
        }
        List<TrainingStep> last = last(steps);
        long without =
                last.stream().filter(step -> step.getTokensTrained() == 0).count();
        if (without > 0) {
            findings.add(new Finding(
                    Weight.WARNING,
                    "starved",
                    (last.size() == 1 ? "" : without + " of ") + lastSteps(last) + " had no token left to train on",
                    "loosen the stage that masks most, or lower admission.eta"));
        }
    }

    private static void training(List<TrainingStep> steps, List<Finding> findings) {
        List<TrainingStep> last = last(steps);
        trainedShare(last, findings);
        known(last, TrainingStep::getEssRatio).ifPresent(ess -> {
            if (ess < LOW_ESS) {
                findings.add(new Finding(
                        Weight.CRITICAL,
                        "ESS",
                        Finding.say("the effective sample size was %.2f of the batch over %s", ess, lastSteps(last)),
                        "few rollouts dominate each step: lower admission.eta, or scale the step by ESS"));
            }
        });
        ratio(last, "staleness.tokens_changed", "staleness.tokens_seen").ifPresent(share -> {
            if (share > MANY_STALE) {
                findings.add(new Finding(
                        Weight.WARNING,
                        "staleness",
                        Finding.say("%.0f %% of the tokens of %s were masked as stale", 100 * share, lastSteps(last)),
                        "lower admission.eta, or speed up the learner"));
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
                        Weight.WARNING,
                        "zero variance",
                        Finding.say(
                                "%.0f %% of the rollouts of %s had an advantage of 0", 100 * share, lastSteps(last)),
                        "all samples of their groups got the same reward: use prompts that are neither too easy"
                                + " nor too hard, or topology.groups.zero_variance=drop or resample"));
            }
        });
        metric(last, "order.length_bias").ifPresent(bias -> {
            if (bias < SHORT_ANSWERS) {
                findings.add(new Finding(
                        Weight.WARNING,
                        "length",
                        Finding.say(
                                "batched rollouts had %.2f times the length of those that were ready or waiting", bias),
                        "short answers are trained on first: topology.batch.order=submission"));
            }
        });
    }

    /** Share of tokens lost between the first stage and the gradient. */
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
                    masked > MANY_MASKED ? Weight.CRITICAL : Weight.WARNING,
                    "masked tokens",
                    Finding.say(
                            "%s trained on %.0f %% of %s tokens: %,d of %,d",
                            lastSteps(last), 100 * (1 - masked), last.size() == 1 ? "its" : "their", trained, seen),
                    "above a quarter masked, fresher data or matching engines beat any correction: lower"
                            + " admission.eta, or check the stage that masks most"));
        }
    }

    /** Over the whole run: a stage that acted once is effective. */
    private static void idle(List<TrainingStep> steps, List<Finding> findings) {
        IdleStages stages = new IdleStages(IdleStages.STEPS);
        steps.forEach(stages::add);
        stages.idle()
                .forEach(idle -> findings.add(new Finding(
                        Weight.NOTE,
                        IDLE_STAGE,
                        idle.sentence(),
                        "remove it or tighten it, unless it is a safeguard")));
    }

    private static String lastSteps(List<TrainingStep> last) {
        return last.size() == 1 ? "the only step" : Finding.say("the last %d steps", last.size());
    }

    private static List<TrainingStep> last(List<TrainingStep> steps) {
        return steps.subList(Math.max(0, steps.size() - WINDOW), steps.size());
    }

    /** Mean over the steps that have the number. */
    private static OptionalDouble known(List<TrainingStep> steps, Function<TrainingStep, @Nullable Double> number) {
        return steps.stream()
                .map(number)
                .filter(Objects::nonNull)
                .mapToDouble(Double::doubleValue)
                .average();
    }

    /** From the learner's stages, else the batch's. */
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
