package dev.millrace.audit.doctor;

import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.corrections.diagnostics.MeanInterval;
import dev.millrace.log.Evaluations;
import dev.millrace.schemas.EvaluatedPrompt;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.VersionEvaluation;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/** What evaluations on held-out prompts say that training itself cannot. Pure. */
final class HeldOutRules {
    /** Nats a token: below it the policy's text is, token by token, e times less likely under the start than the start's own. */
    static final double START_LOG_PROB_FALL = 1;

    private static final double STANDARD_ERRORS = 2;

    private HeldOutRules() {}

    static void heldOut(Examination examination, List<Finding> findings) {
        Evaluations evaluations = examination.heldOut().evaluations();
        fallen(evaluations, examination.steps(), findings);
        unlikelyText(evaluations, findings);
        if (!examination.heldOut().isBestKept()) {
            VersionEvaluation best = evaluations.best().orElseThrow();
            findings.add(
                    new Finding(
                            Weight.WEAK,
                            "best version",
                            Finding.say(
                                    "version %d, the best on held-out prompts (reward %.3f), is not on the log any more",
                                    best.getVersion(), best.getRewardMean()),
                            "a topic's own limit takes it (retention.bytes): topics.weights_retention_bytes=-1 keeps the next one"));
        }
    }

    /**
     * The last version against the best one, prompt by prompt. The best of many is best by chance, too: so one half of the prompts says
     * which it is, and the other half how far the last one is below it.
     */
    private static void fallen(Evaluations evaluations, List<TrainingStep> steps, List<Finding> findings) {
        List<VersionEvaluation> all = evaluations.onSamePrompts();
        if (all.size() < 2) {
            return;
        }
        VersionEvaluation last = all.get(all.size() - 1);
        VersionEvaluation then = all.stream()
                .max(Comparator.comparingDouble((VersionEvaluation of) -> mean(of, 0))
                        .thenComparing(VersionEvaluation::getVersion, Comparator.reverseOrder()))
                .orElseThrow();
        double[] differences = differences(then, last);
        MeanInterval fall = MeanInterval.of(differences);
        if (differences.length == 0 || !fall.isKnown() || !(fall.low() > 0)) {
            return;
        }
        Optional<Double> rise = rise(steps, then.getVersion());
        findings.add(new Finding(
                rise.isPresent() ? Weight.SICK : Weight.WEAK,
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
                (rise.isPresent() ? "it learns its prompts by heart, or what only they reward: " : "")
                        + "millrace evaluate --version best shows what there was, and millrace rollback --to-version "
                        + then.getVersion()
                        + " goes on from there; more prompts, a KL term against the start, or a smaller rate"));
    }

    /** Mean reward over every second prompt, from one on; −∞ without one. */
    private static double mean(VersionEvaluation of, int from) {
        List<EvaluatedPrompt> prompts = of.getPrompts();
        double sum = 0;
        int count = 0;
        for (int i = from; i < prompts.size(); i += 2) {
            if (prompts.get(i).getSamples() > 0) {
                sum += reward(prompts.get(i));
                count++;
            }
        }
        return count == 0 ? Double.NEGATIVE_INFINITY : sum / count;
    }

    /** How much better the earlier one was, on every prompt of the half that did not choose it and that both answered. */
    private static double[] differences(VersionEvaluation earlier, VersionEvaluation later) {
        List<Double> differences = new ArrayList<>();
        int prompts = Math.min(earlier.getPrompts().size(), later.getPrompts().size());
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

    /** By how much the reward of the last steps is above that of those up to a version; empty where that may be chance. */
    private static Optional<Double> rise(List<TrainingStep> steps, long version) {
        List<TrainingStep> upTo =
                steps.stream().filter(step -> step.getVersion() <= version).toList();
        double[] before = rewards(
                upTo.size() < StepRules.WINDOW
                        ? steps.subList(0, Math.min(StepRules.WINDOW, steps.size()))
                        : upTo.subList(upTo.size() - StepRules.WINDOW, upTo.size()));
        double[] now = rewards(steps.subList(Math.max(0, steps.size() - StepRules.WINDOW), steps.size()));
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
                    Weight.WEAK,
                    "text",
                    Finding.say(
                            "under the model that the run began with, a token that version %d writes has a log-prob of %.3f on average,"
                                    + " %.3f nats below that of version %d (more than %.0f)",
                            last.getVersion(), startLogProb(last), fall, first.getVersion(), START_LOG_PROB_FALL),
                    "it earns its reward with text that the model would not have written: read some of it (millrace view),"
                            + " and hold it with a KL term against the start (algorithm.kl)"));
        }
    }

    private static double startLogProb(VersionEvaluation of) {
        Double known = of.getStartLogProb();
        return known == null ? Double.NaN : known;
    }
}
