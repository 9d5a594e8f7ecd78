package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Diagnosis.Evidence;
import dev.millrace.corrections.diagnostics.EscalationBounds.Rung;
import dev.millrace.corrections.length.LengthTrapReport;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.Function;

/**
 * Derives causes, their evidence and the smallest fix of each from a window of diagnostics. Implements the decision
 * tree of "Off-Policy Drift in LLM RL" (Liu 2026) and uses its letters.
 *
 * <p>Every branch is tested, and those that hold are reported, the most severe first (see {@link Cause}):
 * <ol>
 *   <li>A, if the engines disagree at <em>one</em> version, old against behavior. Proximal against behavior then says
 *       nothing about the drift, so C and D, which depend on it, are not tested.
 *   <li>D, if few weights count among the trained tokens. The effective sample size is that of tokens, or of sequences
 *       where sequences are weighed. A band that masks few tokens is this branch's own fix, so ratios outside of it are
 *       no evidence.
 *   <li>F, if answers are much longer than {@link TreeBounds.CourseBounds#surgeSteps} steps ago; growth of the gap and of clipping
 *       is reported along with it.
 *   <li>E, if much is clipped, and more in the newer half of the window than in the older half.
 *   <li>B, if proximal and old (one engine at two versions) are far apart, or, without old log-probs, if the gap of the
 *       oldest lag is large. Where a correction is in force and half of the sample counts, this branch does not hold:
 *       the survey says to continue.
 *   <li>C, if the gap is moderate and most of the sample still counts, unless B holds, whose fix comes first.
 * </ol>
 *
 * <p>Policies are those of the window's last step. A trend compares the means of the window's older and newer halves.
 *
 * <p>Pure and thread-safe.
 */
public final class DecisionTree {
    /** A mean weight is biased only if it is this many standard errors from 1. */
    private static final double STANDARD_ERRORS = 5.0;

    private final TreeBounds bounds;

    public DecisionTree(TreeBounds bounds) {
        this.bounds = bounds;
    }

    public Diagnosis diagnose(DiagnosticsWindow window) {
        Optional<Branch> engines = engineMismatch(window);
        Optional<Branch> blowUp = engines.isPresent() ? Optional.empty() : varianceBlowUp(window);
        Optional<Branch> surge = lengthSurge(window);
        Optional<Branch> stale = staleness(window, engines.isPresent());
        List<Branch> found = new ArrayList<>();
        engines.ifPresent(found::add);
        blowUp.ifPresent(found::add);
        surge.ifPresent(found::add);
        clipSaturation(window).ifPresent(found::add);
        stale.ifPresent(found::add);
        if (engines.isEmpty() && blowUp.isEmpty() && stale.isEmpty()) {
            tokenDrift(window).ifPresent(found::add);
        }
        return new Diagnosis(
                found.isEmpty() ? List.of(healthy(window)) : found, new Pitfalls(bounds).of(window, surge.isPresent()));
    }

    private Optional<Branch> engineMismatch(DiagnosticsWindow window) {
        PolicyGap gap = sameCheckpoint(window.last(), bounds).orElse(null);
        if (gap == null) {
            return Optional.empty();
        }
        List<Evidence> evidence = new ArrayList<>();
        double correlation = gap.probabilities().pearson().orElse(1.0);
        if (correlation < bounds.engines().brokenCorrelation()
                && gap.probabilities().meanDifference() > bounds.engines().significantDifference()) {
            evidence.add(below(
                    "correlation of the probabilities at one version",
                    correlation,
                    bounds.engines().brokenCorrelation()));
        }
        above(
                "|KL| per token at one version",
                Math.abs(gap.divergence().kl()),
                bounds.drift().driftingKl(),
                evidence);
        above(
                "ratio of the perplexities at one version, or its inverse",
                Math.max(gap.perplexityRatio(), 1 / gap.perplexityRatio()),
                bounds.engines().brokenPerplexity(),
                evidence);
        above(
                "largest difference of a probability at one version",
                gap.probabilities().maxDifference(),
                bounds.engines().probabilitySpike(),
                evidence);
        double standardError = gap.weights().standardDeviation() / Math.sqrt(gap.tokens());
        double bias = Math.abs(gap.weights().mean() - 1.0);
        double biasBound = Math.max(bounds.engines().weightBias(), STANDARD_ERRORS * standardError);
        above("|mean ratio - 1| at one version", bias, biasBound, evidence);
        Fix fix = Math.abs(gap.divergence().kl()) > bounds.engines().otherTokensKl()
                ? Fix.ALIGN_TOKENS
                : bias > biasBound ? Fix.ALIGN_SAMPLING : Fix.ALIGN_ENGINES;
        return found(Cause.ENGINE_MISMATCH, evidence, fix);
    }

    /** Old against behavior, if there are enough tokens to conclude anything from. */
    static Optional<PolicyGap> sameCheckpoint(DiagnosticsStep step, TreeBounds bounds) {
        return step.sameCheckpoint()
                .filter(gap -> gap.tokens() >= bounds.engines().leastTokens());
    }

    private Optional<Branch> varianceBlowUp(DiagnosticsWindow window) {
        CorrectionInForce inForce = window.inForce();
        PolicyGap gap = window.last().trainedOn();
        List<Evidence> evidence = new ArrayList<>();
        if (!inForce.bands()) {
            above(
                    "token chi-square",
                    gap.divergence().chiSquareToken(),
                    bounds.drift().severeChiSquare(),
                    evidence);
            if (sampleSize(gap, inForce) < bounds.drift().lowSampleSize()) {
                evidence.add(below(
                        "effective sample size of the " + (inForce.weighsSequences() ? "sequences" : "tokens"),
                        sampleSize(gap, inForce),
                        bounds.drift().lowSampleSize()));
            }
            if (inForce.weighsSequences()) {
                above(
                        "sequence chi-square",
                        gap.divergence().chiSquareSequence(),
                        bounds.drift().explodedChiSquare(),
                        evidence);
            }
        }
        if (inForce.weighs().isPresent()) {
            noiseGrowth(window)
                    .ifPresent(growth -> above(
                            "noise of the gradient over that without weights",
                            growth,
                            bounds.course().noiseGrowth(),
                            evidence));
        }
        EscalationBounds escalation = bounds.escalation();
        double rejected = rejected(window);
        double banded =
                inForce.bands() ? mean(newest(window), StepFacts::banded).orElse(0) : 0;
        above("share of the tokens that is rejected", rejected, escalation.systemsRejected(), evidence);
        above("share of the tokens outside of the band", banded, escalation.bandLimit(), evidence);
        boolean isPastCorrecting = banded > escalation.bandLimit()
                || inForce.isAny()
                        && escalation.rung(gap.divergence().chiSquareToken(), rejected, leastLeft(window))
                                == Rung.SYSTEMS;
        Fix fix = isPastCorrecting
                ? Fix.MEND_SYSTEMS
                : !inForce.bands() ? Fix.MASK_BAND : inForce.rejects() ? Fix.MEND_SYSTEMS : Fix.REJECT_AND_WEIGH;
        return found(Cause.VARIANCE_BLOW_UP, evidence, fix);
    }

    /** What counts among tokens, or among sequences where one weight is a sequence's; of one sequence that says nothing. */
    private static double sampleSize(PolicyGap gap, CorrectionInForce inForce) {
        return inForce.weighsSequences() && gap.sequences() > 1
                ? gap.weights().sequenceEffectiveSampleSize()
                : gap.weights().effectiveSampleSize();
    }

    /** The largest sample size that rejection left at a step of the window: it stays low only if that is; 1 if none rejects. */
    private static double leastLeft(DiagnosticsWindow window) {
        return window.inForce().rejects()
                ? window.steps().stream()
                        .mapToDouble(step -> sampleSize(step.trainedOn(), window.inForce()))
                        .max()
                        .orElse(1)
                : 1;
    }

    private static double rejected(DiagnosticsWindow window) {
        return window.inForce().rejects()
                ? mean(newest(window), StepFacts::rejected).orElse(0)
                : 0;
    }

    private OptionalDouble noiseGrowth(DiagnosticsWindow window) {
        List<StepFacts.Power> known =
                newest(window).stream().flatMap(facts -> facts.power().stream()).toList();
        double unweighted = known.stream()
                .mapToDouble(StepFacts.Power::unweighted)
                .average()
                .orElse(0);
        return unweighted > 0 // of batches without a gradient there is no ratio
                ? OptionalDouble.of(known.stream()
                                .mapToDouble(StepFacts.Power::weighted)
                                .average()
                                .orElseThrow()
                        / unweighted)
                : OptionalDouble.empty();
    }

    private Optional<Branch> lengthSurge(DiagnosticsWindow window) {
        OptionalDouble growth = growth(window, StepFacts::responseTokens, bounds);
        if (growth.isEmpty() || !(growth.getAsDouble() > bounds.course().surge())) {
            return Optional.empty();
        }
        List<Evidence> evidence = new ArrayList<>();
        above(
                "length of the answers over that " + bounds.course().surgeSteps() + " steps ago",
                growth.getAsDouble(),
                bounds.course().surge(),
                evidence);
        List<DiagnosticsStep> steps = window.steps();
        if (steps.size() > 1) {
            double before = k3(steps.subList(0, steps.size() / 2));
            double after = k3(steps.subList(steps.size() - steps.size() / 2, steps.size()));
            above(
                    "k3 per token in the newer half of the window over the older's",
                    after / Math.max(before, bounds.drift().agreeingKl()),
                    bounds.course().rising(),
                    evidence);
        }
        mean(newest(window), StepFacts::clipFraction)
                .ifPresent(clipped -> above(
                        "clipped share of the tokens", clipped, bounds.course().clipFraction(), evidence));
        return found(Cause.LENGTH_SURGE, evidence, Fix.SLOW_DOWN);
    }

    private static double k3(List<DiagnosticsStep> steps) {
        return steps.stream()
                .mapToDouble(step -> step.gap().all().divergence().k3())
                .average()
                .orElse(0);
    }

    /**
     * Divides the mean over the newest steps by the mean over the same number of steps {@link TreeBounds.CourseBounds#surgeSteps}
     * earlier; empty until enough steps are known.
     */
    static OptionalDouble growth(
            DiagnosticsWindow window, Function<StepFacts, OptionalDouble> number, TreeBounds bounds) {
        List<StepFacts> course = window.course();
        int then = course.size() - bounds.course().surgeSteps() - DiagnosticsCourse.WINDOW;
        if (then < 0) {
            return OptionalDouble.empty();
        }
        OptionalDouble before = mean(course.subList(then, then + DiagnosticsCourse.WINDOW), number);
        OptionalDouble now = mean(newest(window), number);
        return before.isEmpty() || now.isEmpty() || !(before.getAsDouble() > 0)
                ? OptionalDouble.empty()
                : OptionalDouble.of(now.getAsDouble() / before.getAsDouble());
    }

    private Optional<Branch> clipSaturation(DiagnosticsWindow window) {
        List<StepFacts> last = newest(window).stream()
                .filter(facts -> facts.clipFraction().isPresent())
                .toList();
        int half = last.size() / 2;
        if (half < 2) { // two steps have no trend
            return Optional.empty();
        }
        double before = mean(last.subList(0, half), StepFacts::clipFraction).orElseThrow();
        double after = mean(last.subList(last.size() - half, last.size()), StepFacts::clipFraction)
                .orElseThrow();
        List<Evidence> evidence = new ArrayList<>();
        if (after > bounds.course().clipFraction() && after > bounds.course().rising() * before) {
            above("clipped share of the tokens", after, bounds.course().clipFraction(), evidence);
            above(
                    "the same, against " + bounds.course().rising() + " times that before it,",
                    after,
                    bounds.course().rising() * before,
                    evidence);
        }
        return found(Cause.CLIP_SATURATION, evidence, Fix.LOWER_PRESSURE);
    }

    private Optional<Branch> staleness(DiagnosticsWindow window, boolean enginesDisagree) {
        DiagnosticsStep step = window.last();
        if (window.inForce().isAny()
                && !enginesDisagree
                && sampleSize(step.trainedOn(), window.inForce())
                        >= bounds.drift().lowSampleSize()) {
            return Optional.empty(); // it is corrected, and enough is left
        }
        List<Evidence> evidence = new ArrayList<>();
        Optional<PolicyGap> versions =
                step.staleness().filter(gap -> gap.tokens() >= bounds.engines().leastTokens());
        if (versions.isPresent()) {
            above(
                    "|KL| per token between the versions",
                    Math.abs(versions.get().divergence().kl()),
                    bounds.drift().driftingKl(),
                    evidence);
            above(
                    "token chi-square between the versions",
                    versions.get().divergence().chiSquareToken(),
                    bounds.drift().moderateChiSquare(),
                    evidence);
        } else if (!enginesDisagree) {
            growsWithLag(step, evidence);
        }
        return found(Cause.POLICY_STALENESS, evidence, Fix.LOWER_STALENESS);
    }

    private void growsWithLag(DiagnosticsStep step, List<Evidence> evidence) {
        List<Map.Entry<Long, PolicyGap>> lags = step.gap().byLag().entrySet().stream()
                .filter(lag -> lag.getValue().tokens() >= bounds.engines().leastTokens())
                .toList();
        if (lags.size() > 1) {
            Map.Entry<Long, PolicyGap> oldest = lags.get(lags.size() - 1);
            double newest = lags.get(0).getValue().divergence().k3();
            above(
                    "k3 per token at a lag of " + oldest.getKey() + " versions",
                    oldest.getValue().divergence().k3(),
                    Math.max(
                            bounds.drift().driftingKl(),
                            bounds.drift().staleGrowth()
                                    * Math.max(newest, bounds.drift().agreeingKl())),
                    evidence);
        }
    }

    private Optional<Branch> tokenDrift(DiagnosticsWindow window) {
        CorrectionInForce inForce = window.inForce();
        PolicyGap gap = window.last().trainedOn();
        double rejected = rejected(window);
        List<Evidence> evidence = new ArrayList<>();
        boolean isCovered =
                inForce.bands() || inForce.rejects() && inForce.weighs().isPresent();
        if (!isCovered) {
            above(
                    "token chi-square",
                    gap.divergence().chiSquareToken(),
                    bounds.drift().moderateChiSquare(),
                    evidence);
            if (rejected >= bounds.escalation().weighRejected()) {
                evidence.add(new Evidence(
                        "share of the tokens that is rejected",
                        rejected,
                        true,
                        bounds.escalation().weighRejected()));
            }
        }
        Rung rung = bounds.escalation().rung(gap.divergence().chiSquareToken(), rejected, 1);
        return found(
                Cause.TOKEN_DRIFT,
                evidence,
                inForce.rejects() || rung == Rung.REJECT_AND_WEIGH ? Fix.REJECT_AND_WEIGH : Fix.REJECT);
    }

    private Branch healthy(DiagnosticsWindow window) {
        PolicyGap gap = window.last().trainedOn();
        double kl = Math.abs(gap.divergence().kl());
        double size = sampleSize(gap, window.inForce());
        return new Branch(
                Cause.NONE,
                List.of(
                        new Evidence(
                                "|KL| per token",
                                kl,
                                kl > bounds.drift().agreeingKl(),
                                bounds.drift().agreeingKl()),
                        new Evidence(
                                "effective sample size",
                                size,
                                size > bounds.drift().lowSampleSize(),
                                bounds.drift().lowSampleSize())),
                Fix.NONE);
    }

    /** The steps at the end of the course that the window has policies of. */
    static List<StepFacts> newest(DiagnosticsWindow window) {
        List<StepFacts> course = window.course();
        return course.subList(Math.max(0, course.size() - DiagnosticsCourse.WINDOW), course.size());
    }

    static OptionalDouble mean(List<StepFacts> steps, Function<StepFacts, OptionalDouble> number) {
        return steps.stream()
                .map(number)
                .filter(OptionalDouble::isPresent)
                .mapToDouble(OptionalDouble::getAsDouble)
                .average();
    }

    private static void above(String quantity, double value, double bound, List<Evidence> evidence) {
        if (value > bound) { // NaN means not computed
            evidence.add(new Evidence(quantity, value, true, bound));
        }
    }

    private static Evidence below(String quantity, double value, double bound) {
        return new Evidence(quantity, value, false, bound);
    }

    private static Optional<Branch> found(Cause cause, List<Evidence> evidence, Fix fix) {
        return evidence.isEmpty() ? Optional.empty() : Optional.of(new Branch(cause, evidence, fix));
    }

    /** Detects mistakes in reading or answering drift. */
    static final class Pitfalls {
        /** Where engines are in order. */
        private static final double AGREEING_CORRELATION = 0.99;
        /** Between a rate that is what it was and one that was halved; a schedule alone takes off less in a hundred steps. */
        private static final double SLOWED = 0.75;

        private final TreeBounds bounds;

        Pitfalls(TreeBounds bounds) {
            this.bounds = bounds;
        }

        Set<Pitfall> of(DiagnosticsWindow window, boolean isSurging) {
            Set<Pitfall> found = EnumSet.noneOf(Pitfall.class);
            DiagnosticsStep step = window.last();
            PolicyGap trainedOn = step.trainedOn();
            DecisionTree.sameCheckpoint(step, bounds)
                    .ifPresentOrElse(
                            gap -> {
                                if (isSpikeAmongGoodAverages(gap)) {
                                    found.add(Pitfall.AVERAGED_SPIKE);
                                }
                            },
                            () -> {
                                if (Math.abs(step.gap().all().divergence().kl())
                                        > bounds.drift().driftingKl()) {
                                    found.add(Pitfall.UNCHECKED_AGREEMENT);
                                }
                            });
            if (window.inForce().weighsSequences()
                    && trainedOn.sequences() > 1
                    && trainedOn.weights().sequenceEffectiveSampleSize()
                            < bounds.drift().lowSampleSize()) {
                found.add(Pitfall.SEQUENCE_WEIGHTS);
            }
            if (widenedWhileClipping(window.course())) {
                found.add(Pitfall.WIDENED_CLIP);
            }
            if (isSurging) {
                OptionalDouble rate = DecisionTree.growth(window, StepFacts::learningRate, bounds);
                if (rate.isPresent() && rate.getAsDouble() > SLOWED) {
                    found.add(Pitfall.UNGUARDED_SURGE);
                }
            }
            if (window.inForce().rejects()
                    && step.lengths().filter(LengthTrapReport::isTrap).isPresent()) {
                found.add(Pitfall.LENGTH_TRAP);
            }
            return found;
        }

        private boolean isSpikeAmongGoodAverages(PolicyGap gap) {
            return gap.probabilities().maxDifference() > bounds.engines().probabilitySpike()
                    && Math.abs(gap.divergence().kl()) < bounds.drift().agreeingKl()
                    && gap.probabilities().pearson().orElse(1) >= AGREEING_CORRELATION;
        }

        private boolean widenedWhileClipping(List<StepFacts> course) {
            for (int i = 1; i < course.size(); i++) {
                StepFacts before = course.get(i - 1);
                StepFacts after = course.get(i);
                if (before.clipRange().isPresent()
                        && after.clipRange().isPresent()
                        && after.clipRange().getAsDouble() > before.clipRange().getAsDouble()
                        && before.clipFraction().orElse(0) > bounds.course().clipFraction()) {
                    return true;
                }
            }
            return false;
        }
    }
}
