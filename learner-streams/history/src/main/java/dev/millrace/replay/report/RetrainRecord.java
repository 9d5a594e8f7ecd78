package dev.millrace.replay.report;

import dev.millrace.replay.Collapse;
import dev.millrace.replay.retrain.RetrainedStep;
import dev.millrace.replay.retrain.Retraining.RetrainListener;
import dev.millrace.replay.retrain.VariantStep;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * What a re-train found, kept for text and page: some hundred bytes a step and variant, where a step takes tens of
 * milliseconds or more.
 */
public final class RetrainRecord implements RetrainListener {
    /** Steps in a row without a change after which a variant is said to have frozen. */
    static final int FROZEN = 10;

    private final List<String> names;
    private final List<RetrainedStep> steps = new ArrayList<>();
    private final List<Long> evaluatedAt = new ArrayList<>();
    private final List<List<OptionalDouble>> evaluations = new ArrayList<>();
    private final Map<Integer, String> endings = new TreeMap<>();
    private OptionalLong parted = OptionalLong.empty();

    public RetrainRecord(List<String> names) {
        this.names = List.copyOf(names);
    }

    @Override
    public void step(RetrainedStep step) {
        steps.add(step);
        if (parted.isEmpty()
                && !step.variants().get(0).map(VariantStep::isAsRecorded).orElse(false)) {
            parted = OptionalLong.of(step.version());
        }
    }

    @Override
    public void evaluated(long version, List<OptionalDouble> rewards) {
        evaluatedAt.add(version);
        evaluations.add(List.copyOf(rewards));
    }

    @Override
    public void ended(int variant, long version, String why) {
        endings.put(variant, "ended at version " + version + ": " + why);
    }

    List<String> names() {
        return names;
    }

    List<RetrainedStep> steps() {
        return steps;
    }

    /** The first version at which the run's own variant made other weights than the run; empty if it never did. */
    public OptionalLong parted() {
        return parted;
    }

    /** Sequences of all batches. */
    long sequences() {
        return steps.stream().mapToLong(RetrainedStep::sequences).sum();
    }

    /** Those of them that the run's own variant learnt from as recorded. */
    long sameRollouts() {
        return steps.stream()
                .mapToLong(step -> step.variants()
                        .get(0)
                        .map(VariantStep::rolloutsAsRecorded)
                        .orElse(0))
                .sum();
    }

    /** Why a variant ended early; null if it did not. */
    @Nullable
    String ending(int variant) {
        return endings.get(variant);
    }

    double[] evaluatedAt() {
        return evaluatedAt.stream().mapToDouble(Long::doubleValue).toArray();
    }

    /** Rewards of a variant's policies, as far as it went. */
    double[] rewards(int variant) {
        return evaluations.stream()
                .map(rewards -> rewards.get(variant))
                .filter(OptionalDouble::isPresent)
                .mapToDouble(OptionalDouble::getAsDouble)
                .toArray();
    }

    /** Mean of the last evaluations, as many as the rule of a collapse looks at. */
    double lastReward(int variant) {
        double[] all = rewards(variant);
        return Arrays.stream(all)
                .skip(Math.max(0, all.length - Collapse.STAYS))
                .average()
                .orElse(Double.NaN);
    }

    /** The version from which a variant's reward did not come back; empty if it did not collapse. */
    OptionalLong collapsedAt(int variant) {
        OptionalInt at = Collapse.at(rewards(variant));
        return at.isPresent() ? OptionalLong.of(evaluatedAt.get(at.getAsInt())) : OptionalLong.empty();
    }

    /**
     * The version since which a variant's weights have stayed as they were, if that is so for the last {@value #FROZEN} of its
     * steps at least; empty if it is not.
     */
    OptionalLong frozenSince(int variant) {
        int still = 0;
        for (int i = steps.size() - 1; i > 0; i--) {
            Optional<VariantStep> step = steps.get(i).variants().get(variant);
            Optional<VariantStep> before = steps.get(i - 1).variants().get(variant);
            if (step.isEmpty()
                    || before.isEmpty()
                    || !step.get().weightsSha256().equals(before.get().weightsSha256())) {
                break;
            }
            still++;
        }
        return still >= FROZEN ? OptionalLong.of(steps.get(steps.size() - still).version()) : OptionalLong.empty();
    }

    /** A number over steps; NaN where there is none. */
    double[] curve(int variant, ToDoubleFunction<VariantStep> of) {
        return steps.stream()
                .mapToDouble(step ->
                        step.variants().get(variant).map(of::applyAsDouble).orElse(Double.NaN))
                .toArray();
    }

    /** Its mean over the steps that have it; NaN if none has. */
    double mean(int variant, ToDoubleFunction<VariantStep> of) {
        return Arrays.stream(curve(variant, of))
                .filter(Double::isFinite)
                .average()
                .orElse(Double.NaN);
    }

    /** Its last; NaN if there is none. */
    double last(int variant, ToDoubleFunction<VariantStep> of) {
        double[] all =
                Arrays.stream(curve(variant, of)).filter(Double::isFinite).toArray();
        return all.length == 0 ? Double.NaN : all[all.length - 1];
    }
}
