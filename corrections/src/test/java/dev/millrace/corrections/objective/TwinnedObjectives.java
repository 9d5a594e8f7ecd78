package dev.millrace.corrections.objective;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Every objective of the library with its naive twin. */
final class TwinnedObjectives {
    private static final ClipRange RANGE = new ClipRange(0.2, 0.28);

    private TwinnedObjectives() {
    }

    static Stream<TwinnedObjective> all() {
        List<TwinnedObjective> all = new ArrayList<>();
        for (Aggregation aggregation : List.of(new Aggregation.TokenMean(), new Aggregation.TokenSum(),
                new Aggregation.SequenceMeanTokenSum(), new Aggregation.SequenceMeanTokenSumNorm(50),
                new Aggregation.SequenceMeanTokenMean())) {
            all.add(ppoClip(aggregation));
        }
        all.add(policyGradient());
        all.add(decoupledPpo());
        return all.stream();
    }

    static Stream<TwinnedObjective> withoutDetachedParts() {
        return all().filter(twinned -> !twinned.detaches());
    }

    private static TwinnedObjective ppoClip(Aggregation aggregation) {
        return new TwinnedObjective("PPO clip, " + aggregation.getClass().getSimpleName(),
                new PpoClip(RANGE, 1.5, aggregation), NaiveLoss.tokenwise(aggregation, (current, detached, proximal, a) ->
                        surrogate(Math.exp(current - proximal), a)), false, false);
    }

    private static double surrogate(double ratio, double a) {
        double clipped = Math.min(Math.max(ratio, 0.8), 1.28);
        double loss = Math.max(-a * ratio, -a * clipped);
        return a < 0 ? Math.min(loss, -1.5 * a) : loss;
    }

    private static TwinnedObjective policyGradient() {
        Aggregation aggregation = new Aggregation.SequenceMeanTokenSum();
        return new TwinnedObjective("policy gradient", new PolicyGradient(aggregation),
                NaiveLoss.tokenwise(aggregation, (current, detached, proximal, a) -> -a * current), false, false);
    }

    private static TwinnedObjective decoupledPpo() {
        Aggregation aggregation = new Aggregation.TokenMean();
        NaiveLoss twin = (in, current, detached) -> {
            double loss = 0;
            for (int t = 0; t < current.length; t++) {
                if (in.batch().isTrained(t)) {
                    double weight = Math.min(1.2, Math.exp((double) in.proximal()[t] - in.behavior()[t]));
                    float weightAsHeld = (float) (weight * in.weights()[t]);
                    loss += weightAsHeld * surrogate(Math.exp(current[t] - in.proximal()[t]), in.advantages()[t]);
                }
            }
            return loss / in.batch().trainedTokens();
        };
        return new TwinnedObjective("decoupled PPO", new DecoupledPpo(RANGE, 1.5, 1.2, aggregation), twin, false, false);
    }
}
