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

/** Results of a re-train for text and page, some hundred bytes per step and variant. */
public final class RetrainRecord implements RetrainListener {
    /** Consecutive unchanged steps of a frozen variant. */
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

    /** First version at which the run's own variant differs from the run. */
    public OptionalLong parted() {
        return parted;
    }

    long sequences() {
        return steps.stream().mapToLong(RetrainedStep::sequences).sum();
    }

    /** Of these, relearned as recorded by the run's own variant. */
    long sameRollouts() {
        return steps.stream()
                .mapToLong(step -> step.variants()
                        .get(0)
                        .map(VariantStep::rolloutsAsRecorded)
                        .orElse(0))
                .sum();
    }

    /** Null if it did not end early. */
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

    /** Mean over as many last evaluations as the collapse rule uses. */
    double lastReward(int variant) {
        double[] all = rewards(variant);
        return Arrays.stream(all)
                .skip(Math.max(0, all.length - Collapse.STAYS))
                .average()
                .orElse(Double.NaN);
    }

    /** Version of the collapse, if any. */
    OptionalLong collapsedAt(int variant) {
        OptionalInt at = Collapse.at(rewards(variant));
        return at.isPresent() ? OptionalLong.of(evaluatedAt.get(at.getAsInt())) : OptionalLong.empty();
    }

    /** Start of the unchanged weights, if they cover at least the last {@value #FROZEN} steps. */
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

    /** NaN where there is none. */
    double[] curve(int variant, ToDoubleFunction<VariantStep> of) {
        return Figure.curve(steps, step -> step.variants().get(variant), of);
    }

    double mean(int variant, ToDoubleFunction<VariantStep> of) {
        return Figure.mean(curve(variant, of));
    }

    double last(int variant, ToDoubleFunction<VariantStep> of) {
        double[] all =
                Arrays.stream(curve(variant, of)).filter(Double::isFinite).toArray();
        return all.length == 0 ? Double.NaN : all[all.length - 1];
    }
}
