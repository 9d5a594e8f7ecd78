package dev.millrace.replay.retrain;

import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.StepFacts;
import dev.millrace.replay.DecidedFigures;
import dev.millrace.replay.MaskedShare;
import dev.millrace.replay.ReplayedStep;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * Tried batches under one algorithm.
 *
 * @param zeroWeights trained tokens with weight 0
 * @param sequences with trainable tokens, and wholly masked of these
 * @param guardedSteps steps at which a length guard would lower the rate
 * @param means over the steps that have the figure
 */
public record TrialCourse(
        String name,
        Diagnoses diagnoses,
        MaskedShare tokens,
        long zeroWeights,
        MaskedShare sequences,
        int guardedSteps,
        Map<TrialFigure, Double> means) {
    public TrialCourse {
        means = means.isEmpty() ? Map.of() : Collections.unmodifiableMap(new EnumMap<>(means));
    }

    /**
     * Diagnoses by step.
     *
     * @param causeAt whether the tree names the cause, by step, most severe or not
     * @param last diagnosis at the last step; empty without trainable tokens
     */
    public record Diagnoses(List<Boolean> causeAt, int alarmSteps, OptionalLong firstAlarm, Optional<Diagnosis> last) {
        public Diagnoses {
            causeAt = List.copyOf(causeAt);
        }
    }

    public int causeSteps() {
        return (int) diagnoses.causeAt().stream().filter(at -> at).count();
    }

    /** Trainable tokens without effect: masked, or without a weight. */
    public long lost() {
        return tokens.masked() + zeroWeights;
    }

    public OptionalDouble mean(TrialFigure figure) {
        Double mean = means.get(figure);
        return mean == null ? OptionalDouble.empty() : OptionalDouble.of(mean);
    }

    /** True if the tree names a cause at the last step. */
    public boolean endsWith(Cause cause) {
        return diagnoses.last().stream()
                .flatMap(diagnosis -> diagnosis.branches().stream())
                .map(Branch::cause)
                .anyMatch(cause::equals);
    }

    /** Collects steps. Confined to one thread. */
    static final class Sums {
        private final String name;
        private final Cause cause;
        private final double[] sums = new double[TrialFigure.values().length];
        private final long[] known = new long[sums.length];
        private final List<Boolean> causeAt = new ArrayList<>();
        private int alarmSteps;
        private OptionalLong firstAlarm = OptionalLong.empty();
        private @Nullable Diagnosis last;
        private MaskedShare tokens = MaskedShare.NONE;
        private long zeroWeights;
        private MaskedShare sequences = MaskedShare.NONE;
        private int guardedSteps;

        Sums(String name, Cause cause) {
            this.name = name;
            this.cause = cause;
        }

        void add(ReplayedStep step, int alternative, boolean isGuarded) {
            var figures = step.figures().get(alternative);
            for (TrialFigure figure : TrialFigure.values()) {
                figure.of(figures, step.facts().get(alternative)).ifPresent(value -> {
                    sums[figure.ordinal()] += value;
                    known[figure.ordinal()]++;
                });
            }
            tokens = tokens.plus(figures.tokens());
            zeroWeights += figures.counting().zeroWeights();
            sequences = sequences.plus(figures.sequences());
            guardedSteps += isGuarded ? 1 : 0;
            last = step.diagnoses().get(alternative).orElse(null);
            causeAt.add(last != null && last.branches().stream().anyMatch(branch -> branch.cause() == cause));
            if (last != null && !last.isHealthy()) {
                alarmSteps++;
                firstAlarm = firstAlarm.isPresent()
                        ? firstAlarm
                        : OptionalLong.of(step.batch().id());
            }
        }

        TrialCourse course() {
            Map<TrialFigure, Double> means = new EnumMap<>(TrialFigure.class);
            for (TrialFigure figure : TrialFigure.values()) {
                if (known[figure.ordinal()] > 0) {
                    means.put(figure, sums[figure.ordinal()] / known[figure.ordinal()]);
                }
            }
            return new TrialCourse(
                    name,
                    new Diagnoses(causeAt, alarmSteps, firstAlarm, Optional.ofNullable(last)),
                    tokens,
                    zeroWeights,
                    sequences,
                    guardedSteps,
                    means);
        }
    }

    /** Means compared between the recorded run and a patch. */
    public enum TrialFigure {
        ESS(
                "effective sample size, raw weights",
                (figures, facts) -> known(figures.step().essRatio())),
        SECOND_MOMENT(
                "second moment before its mask",
                (figures, facts) -> known(figures.step().secondMoment())),
        CHI_SQUARE(
                "chi-square of the tokens that count",
                (figures, facts) -> known(figures.counting().chiSquare())),
        K3(
                "KL (k3) of what is trained on",
                (figures, facts) ->
                        figures.tokens().masked() == figures.tokens().of()
                                ? OptionalDouble.empty()
                                : known(figures.kept().k3())),
        REJECTED("tokens rejected", (figures, facts) -> facts.rejected()),
        BANDED("tokens outside of a band", (figures, facts) -> facts.banded()),
        CHANGED_WEIGHTS(
                "weights truncated or set to 0",
                (figures, facts) -> figures.tokens().of() == 0
                        ? OptionalDouble.empty()
                        : OptionalDouble.of((double) figures.kept().changedWeights()
                                / figures.tokens().of())),
        CLIPPED("tokens clipped within the step", (figures, facts) -> facts.clipFraction()),
        STEP_SCALE(
                "factor on the step", (figures, facts) -> known(figures.step().scale())),
        GRADIENT_POWER(
                "gradient power by a forward pass",
                (figures, facts) -> known(figures.counting().gradientPower()));

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
}
