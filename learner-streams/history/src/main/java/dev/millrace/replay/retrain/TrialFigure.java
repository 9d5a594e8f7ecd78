package dev.millrace.replay.retrain;

import dev.millrace.corrections.diagnostics.StepFacts;
import dev.millrace.replay.DecidedFigures;
import java.util.OptionalDouble;
import java.util.function.BiFunction;

/** Means compared between the recorded run and a patch. */
public enum TrialFigure {
    ESS("effective sample size, raw weights", (figures, facts) -> known(figures.essRatio())),
    SECOND_MOMENT("second moment before its mask", (figures, facts) -> known(figures.secondMoment())),
    CHI_SQUARE("chi-square of the tokens that count", (figures, facts) -> known(figures.countingChiSquare())),
    K3(
            "KL (k3) of what is trained on",
            (figures, facts) ->
                    figures.tokens().masked() == figures.tokens().of() ? OptionalDouble.empty() : known(figures.k3())),
    REJECTED("tokens rejected", (figures, facts) -> facts.rejected()),
    BANDED("tokens outside of a band", (figures, facts) -> facts.banded()),
    CHANGED_WEIGHTS(
            "weights truncated or set to 0",
            (figures, facts) -> figures.tokens().of() == 0
                    ? OptionalDouble.empty()
                    : OptionalDouble.of(
                            (double) figures.changedWeights() / figures.tokens().of())),
    CLIPPED("tokens clipped within the step", (figures, facts) -> facts.clipFraction()),
    STEP_SCALE("factor on the step", (figures, facts) -> known(figures.stepScale())),
    GRADIENT_POWER("gradient power by a forward pass", (figures, facts) -> known(figures.gradientPower()));

    private final String title;
    private final BiFunction<DecidedFigures, StepFacts, OptionalDouble> of;

    TrialFigure(String title, BiFunction<DecidedFigures, StepFacts, OptionalDouble> of) {
        this.title = title;
        this.of = of;
    }

    public String title() {
        return title;
    }

    /** Empty if the step lacks it. */
    OptionalDouble of(DecidedFigures figures, StepFacts facts) {
        return of.apply(figures, facts);
    }

    private static OptionalDouble known(double value) {
        return Double.isFinite(value) ? OptionalDouble.of(value) : OptionalDouble.empty();
    }
}
