package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.length.LengthTrapReport;
import java.util.EnumSet;
import java.util.List;
import java.util.OptionalDouble;
import java.util.Set;

/** Detects mistakes in reading or answering drift. */
final class Pitfalls {
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
                            if (Math.abs(step.gap().all().kl()) > bounds.driftingKl()) {
                                found.add(Pitfall.UNCHECKED_AGREEMENT);
                            }
                        });
        if (window.inForce().weighsSequences()
                && trainedOn.sequences() > 1
                && trainedOn.sequenceEffectiveSampleSize() < bounds.lowSampleSize()) {
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
        return gap.probabilities().maxDifference() > bounds.probabilitySpike()
                && Math.abs(gap.kl()) < bounds.agreeingKl()
                && gap.probabilities().pearson().orElse(1) >= AGREEING_CORRELATION;
    }

    private boolean widenedWhileClipping(List<StepFacts> course) {
        for (int i = 1; i < course.size(); i++) {
            StepFacts before = course.get(i - 1);
            StepFacts after = course.get(i);
            if (before.clipRange().isPresent()
                    && after.clipRange().isPresent()
                    && after.clipRange().getAsDouble() > before.clipRange().getAsDouble()
                    && before.clipFraction().orElse(0) > bounds.clipFraction()) {
                return true;
            }
        }
        return false;
    }
}
