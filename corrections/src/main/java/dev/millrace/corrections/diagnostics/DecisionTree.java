package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.diagnostics.Diagnosis.Evidence;
import dev.millrace.corrections.length.LengthTrapReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.ToDoubleFunction;

/**
 * From a window of diagnostics to a cause, its evidence and the smallest fix.
 *
 * <p>Causes are asked for in this order, and the first one that the evidence supports is the answer:
 * <ol>
 *   <li>A, B: the numbers themselves are wrong. Nothing else can be concluded from them, and no correction helps.
 *   <li>F: the gap is notable and has grown within the window. The most urgent of what a correction can still catch.
 *   <li>E: what looks like divergence is length. Correcting harder would reject more long answers.
 *   <li>D: the gap grows with the lag.
 *   <li>C: the gap is there at one version.
 * </ol>
 *
 * <p>Escalation for C, D and F goes by what is in force: rejection, then rejection and token weights, then the
 * systems: engines for C, staleness for D, the step for F. The bounds of the third rung are the same as of the first;
 * a window made under a correction that still shows the cause calls for the next one, if the gap is severe: a notable
 * gap that is being corrected is what the correction is for.
 *
 * <p>Sources: Liu, Li et al., "When Speed Kills Stability" (2025) and the guide of verl's rollout correction for the
 * causes C to F, the bounds on KL, chi-square and sample size, and the order of the rungs. The letters and the order
 * in which the causes are ruled out are this library's reading.
 *
 * <p>Pure and thread-safe.
 */
public final class DecisionTree {
    /** Fewer steps than this have no trend. */
    private static final int STEPS_FOR_A_TREND = 4;
    /** A mean weight is biased only if it is this many standard errors from 1. */
    private static final double STANDARD_ERRORS = 5.0;
    /** Above this, token weights are healthy, so that a low sequence sample size is the length's doing. */
    private static final double HEALTHY_TOKEN_SAMPLE_SIZE = 0.7;

    private final TreeBounds bounds;

    public DecisionTree(TreeBounds bounds) {
        this.bounds = bounds;
    }

    /** The diagnosis of {@code window}; its last step decides, but for what is a trend. */
    public Diagnosis diagnose(DiagnosticsWindow window) {
        DiagnosticsStep last = window.steps().get(window.steps().size() - 1);
        return misaligned(last)
                .or(() -> sampledOtherwise(last))
                .or(() -> feedingBack(window))
                .or(() -> trappedByLength(last))
                .or(() -> stale(last, window.inForce()))
                .or(() -> numericallyApart(last, window.inForce()))
                .orElseGet(() -> healthy(last));
    }

    private Optional<Diagnosis> misaligned(DiagnosticsStep step) {
        PolicyGap gap = step.enginesAlone().orElse(step.gap().all());
        List<Evidence> evidence = new ArrayList<>();
        if (Math.abs(gap.kl()) > bounds.misalignedKl()) {
            evidence.add(new Evidence("|KL| per token", Math.abs(gap.kl()), true, bounds.misalignedKl()));
        }
        double correlation = gap.probabilities().pearson().orElse(1.0);
        if (correlation < bounds.misalignedCorrelation()) {
            evidence.add(new Evidence(
                    "correlation of the probabilities", correlation, false, bounds.misalignedCorrelation()));
        }
        return found(Cause.TOKEN_MISALIGNMENT, evidence, Fix.ALIGN_TOKENS);
    }

    private Optional<Diagnosis> sampledOtherwise(DiagnosticsStep step) {
        PolicyGap gap = step.enginesAlone().orElse(step.gap().all());
        double standardError = gap.weights().standardDeviation() / Math.sqrt(gap.tokens());
        double bound = Math.max(bounds.weightBias(), STANDARD_ERRORS * standardError);
        double bias = Math.abs(gap.weights().mean() - 1.0);
        return found(
                Cause.SAMPLING_MISMATCH,
                bias > bound ? List.of(new Evidence("|mean ratio - 1|", bias, true, bound)) : List.of(),
                Fix.ALIGN_SAMPLING);
    }

    private Optional<Diagnosis> feedingBack(DiagnosticsWindow window) {
        List<DiagnosticsStep> steps = window.steps();
        if (steps.size() < STEPS_FOR_A_TREND) {
            return Optional.empty();
        }
        double before = mean(
                steps.subList(0, steps.size() / 2), step -> step.gap().all().k3());
        double after = mean(
                steps.subList(steps.size() - steps.size() / 2, steps.size()),
                step -> step.gap().all().k3());
        if (!(after > bounds.notableK3()) || !(after > bounds.feedbackGrowth() * before)) {
            return Optional.empty();
        }
        return found(
                Cause.FEEDBACK,
                List.of(
                        new Evidence("k3 in the second half of the window", after, true, bounds.notableK3()),
                        new Evidence("its growth over the first half", after / before, true, bounds.feedbackGrowth())),
                window.inForce().next(Fix.SLOW_DOWN));
    }

    private static double mean(List<DiagnosticsStep> steps, ToDoubleFunction<DiagnosticsStep> number) {
        return steps.stream().mapToDouble(number).average().orElseThrow();
    }

    private Optional<Diagnosis> trappedByLength(DiagnosticsStep step) {
        List<Evidence> evidence = new ArrayList<>();
        PolicyGap all = step.gap().all();
        boolean tokensHealthy = all.weights().effectiveSampleSize() > HEALTHY_TOKEN_SAMPLE_SIZE;
        if (tokensHealthy && all.sequenceEffectiveSampleSize() < bounds.lowSampleSize() && all.sequences() > 1) {
            evidence.add(new Evidence(
                    "effective sample size of sequence products",
                    all.sequenceEffectiveSampleSize(),
                    false,
                    bounds.lowSampleSize()));
            evidence.add(new Evidence(
                    "effective sample size of token ratios",
                    all.weights().effectiveSampleSize(),
                    true,
                    HEALTHY_TOKEN_SAMPLE_SIZE));
        }
        step.lengths().filter(LengthTrapReport::isTrap).ifPresent(lengths -> {
            LengthTrapReport.Bucket shortest = lengths.buckets().get(0);
            LengthTrapReport.Bucket longest =
                    lengths.buckets().get(lengths.buckets().size() - 1);
            evidence.add(new Evidence(
                    "rejected share of the longest answers", longest.rejectionRate(), true, shortest.rejectionRate()));
        });
        return found(Cause.LENGTH_TRAP, evidence, Fix.NORMALIZE_LENGTH);
    }

    private Optional<Diagnosis> stale(DiagnosticsStep step, CorrectionInForce inForce) {
        if (step.gap().byLag().size() < 2) {
            return Optional.empty();
        }
        List<PolicyGap> byLag = List.copyOf(step.gap().byLag().values());
        PolicyGap newest = byLag.get(0);
        PolicyGap oldest = byLag.get(byLag.size() - 1);
        double bound = Math.max(bounds.notableK3(), bounds.staleGrowth() * newest.k3());
        if (!(oldest.k3() > bound) || covered(step.gap().all(), inForce)) {
            return Optional.empty();
        }
        return found(
                Cause.STALENESS,
                List.of(new Evidence(
                        "k3 at a lag of " + step.gap().byLag().lastKey() + " versions", oldest.k3(), true, bound)),
                inForce.next(Fix.LOWER_STALENESS));
    }

    private Optional<Diagnosis> numericallyApart(DiagnosticsStep step, CorrectionInForce inForce) {
        PolicyGap gap = step.enginesAlone().orElse(step.gap().all());
        List<Evidence> evidence = new ArrayList<>(severe(gap));
        if (evidence.isEmpty() && gap.k3() > bounds.notableK3() && !covered(gap, inForce)) {
            evidence.add(new Evidence("k3 per token", gap.k3(), true, bounds.notableK3()));
        }
        return found(Cause.ENGINE_NUMERICS, evidence, inForce.next(Fix.ALIGN_ENGINES));
    }

    /** A gap that is notable and not severe is what the correction in force is for. */
    private boolean covered(PolicyGap gap, CorrectionInForce inForce) {
        return inForce != CorrectionInForce.NONE && severe(gap).isEmpty();
    }

    private List<Evidence> severe(PolicyGap gap) {
        List<Evidence> evidence = new ArrayList<>();
        if (Math.abs(gap.kl()) > bounds.severeKl()) {
            evidence.add(new Evidence("|KL| per token", Math.abs(gap.kl()), true, bounds.severeKl()));
        }
        if (gap.chiSquareToken() > bounds.severeChiSquare()) {
            evidence.add(new Evidence("token chi-square", gap.chiSquareToken(), true, bounds.severeChiSquare()));
        }
        if (gap.weights().effectiveSampleSize() < bounds.lowSampleSize()) {
            evidence.add(new Evidence(
                    "effective sample size of token ratios",
                    gap.weights().effectiveSampleSize(),
                    false,
                    bounds.lowSampleSize()));
        }
        return evidence;
    }

    private Diagnosis healthy(DiagnosticsStep step) {
        double k3 = step.gap().all().k3();
        boolean notable = k3 > bounds.notableK3();
        return new Diagnosis(
                Cause.NONE, List.of(new Evidence("k3 per token", k3, notable, bounds.notableK3())), Fix.NONE);
    }

    private static Optional<Diagnosis> found(Cause cause, List<Evidence> evidence, Fix fix) {
        return evidence.isEmpty() ? Optional.empty() : Optional.of(new Diagnosis(cause, evidence, fix));
    }
}
