package dev.millrace.corrections.objective;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Every objective of the library with its naive twin. */
final class TwinnedObjectives {
    private static final Anchor ANY = Anchor.PROXIMAL;
    private static final LossAggregation MEAN = new LossAggregation.TokenMean();
    private static final LossAggregation SEQUENCES = new LossAggregation.SeqMeanTokenMean();

    private TwinnedObjectives() {}

    static Stream<TwinnedObjective> all() {
        List<TwinnedObjective> all = new ArrayList<>();
        for (LossAggregation aggregation : List.of(
                new LossAggregation.TokenMean(),
                new LossAggregation.TokenSum(),
                new LossAggregation.SeqMeanTokenSum(),
                new LossAggregation.SeqMeanTokenSumNorm(50),
                new LossAggregation.SeqMeanTokenMean())) {
            all.add(ppoClip(aggregation));
        }
        all.add(policyGradient());
        all.add(new TwinnedObjective(
                "decoupled PPO",
                new DecoupledPpo(0.2, 0.28, 1.5),
                MEAN,
                NaiveLoss.tokenwise(
                        MEAN, (current, detached, proximal, a) -> surrogate(Math.exp(current - proximal), a)),
                false,
                false));
        all.add(dppoTv());
        all.add(dppoKl());
        all.add(new TwinnedObjective(
                "SAPO",
                new Sapo(ANY, 1.0, 1.05),
                SEQUENCES,
                NaiveLoss.tokenwise(
                        SEQUENCES, (current, detached, proximal, a) -> gate(Math.exp(current - proximal), a)),
                false,
                false));
        all.add(new TwinnedObjective(
                "CISPO",
                new Cispo(ANY, 0.2, 0.28),
                MEAN,
                NaiveLoss.tokenwise(
                        MEAN,
                        (current, detached, proximal, a) ->
                                -Math.min(Math.max(Math.exp(detached - proximal), 0.8), 1.28) * a * current),
                true,
                false));
        all.add(new TwinnedObjective(
                "DRO",
                new Dro(ANY, 0.05),
                MEAN,
                NaiveLoss.tokenwise(
                        MEAN,
                        (current, detached, proximal, a) -> -(a * current - 0.025 * Math.pow(current - proximal, 2))),
                false,
                false));
        all.add(new TwinnedObjective(
                "M2PO",
                new M2poSurrogate(ANY),
                MEAN,
                NaiveLoss.tokenwise(MEAN, (current, detached, proximal, a) -> -a * Math.exp(current - proximal)),
                false,
                false));
        all.add(new TwinnedObjective(
                "GSPO",
                new Gspo(ANY, 0.2, 0.28, Double.POSITIVE_INFINITY),
                SEQUENCES,
                sequencewise(
                        SEQUENCES,
                        (s, n, a) -> surrogate(Math.exp(s / n), a, Double.POSITIVE_INFINITY),
                        RandomInput::proximal),
                false,
                false));
        all.add(new TwinnedObjective(
                "GSPO with dual clip and token mean",
                new Gspo(ANY, 0.2, 0.28, 1.5),
                MEAN,
                sequencewise(MEAN, (s, n, a) -> surrogate(Math.exp(s / n), a), RandomInput::proximal),
                false,
                false));
        all.add(new TwinnedObjective(
                "SAPO of sequences",
                new SequenceSapo(ANY, 1.0, 1.05),
                MEAN,
                sequencewise(MEAN, (s, n, a) -> gate(Math.exp(s / n), a), RandomInput::proximal),
                false,
                false));
        all.add(new TwinnedObjective(
                "OAPL",
                new Oapl(0.3),
                SEQUENCES,
                sequencewise(SEQUENCES, (s, n, a) -> Math.pow(0.3 * s - a, 2), RandomInput::behavior),
                false,
                false));
        all.add(new TwinnedObjective(
                "R2VPO",
                new R2vpo(ANY, 0.1, 0.02, 1, 0.01, 100),
                MEAN,
                NaiveLoss.tokenwise(MEAN, (current, detached, proximal, a) -> {
                    double ratio = Math.exp(current - proximal);
                    return -(ratio * a - 0.1 * (ratio - 1) * (ratio - 1));
                }),
                false,
                false));
        all.add(quatro());
        all.add(gspoToken());
        all.add(ctpo());
        all.add(gmpo());
        all.add(topr());
        all.add(aspo());
        all.add(dispo());
        all.add(ipo());
        all.add(new TwinnedObjective(
                "LUSPO",
                new Luspo(ANY, 0.2, 0.28),
                SEQUENCES,
                sequencewise(
                        SEQUENCES,
                        (s, n, a) -> n * surrogate(Math.exp(s / n), a, Double.POSITIVE_INFINITY),
                        RandomInput::proximal),
                false,
                false));
        all.add(p3o());
        all.add(vespo());
        all.add(covariance(
                "KL-Cov",
                new KlCov(ANY, 0.3, 0.1),
                TwinnedObjectives::klCovToken,
                0.3,
                Double.NEGATIVE_INFINITY,
                Double.POSITIVE_INFINITY,
                false));
        all.add(covariance(
                "Clip-Cov",
                new ClipCov(ANY, 0.2, 0.28, 1.0, 0.05, 0.8),
                TwinnedObjectives::clipCovToken,
                1.0,
                0.05,
                0.8,
                true));
        return all.stream();
    }

    static Stream<TwinnedObjective> withoutDetachedParts() {
        return all().filter(twinned -> !twinned.detaches());
    }

    private static TwinnedObjective ppoClip(LossAggregation aggregation) {
        return new TwinnedObjective(
                "PPO clip, " + aggregation.getClass().getSimpleName(),
                new PpoClip(ANY, 0.2, 0.28, 1.5),
                aggregation,
                NaiveLoss.tokenwise(
                        aggregation, (current, detached, proximal, a) -> surrogate(Math.exp(current - proximal), a)),
                false,
                false);
    }

    private static double surrogate(double ratio, double a) {
        return surrogate(ratio, a, 1.5);
    }

    private static double surrogate(double ratio, double a, double dualClip) {
        double clipped = Math.min(Math.max(ratio, 0.8), 1.28);
        double loss = Math.max(-a * ratio, -a * clipped);
        return a < 0 ? Math.min(loss, -dualClip * a) : loss;
    }

    private static double gate(double ratio, double a) {
        double tau = a > 0 ? 1.0 : 1.05;
        return -a * 4 / tau / (1 + Math.exp(-tau * (ratio - 1)));
    }

    private static TwinnedObjective dppoTv() {
        return new TwinnedObjective(
                "DPPO-TV",
                new DppoTv(ANY, 0.05, 0.08, 1.3),
                MEAN,
                NaiveLoss.tokenwise(MEAN, (current, detached, proximal, a) -> {
                    double moved = Math.exp(detached) - Math.exp(proximal);
                    boolean inside = a > 0 ? moved <= 0.08 : moved >= -0.05;
                    return inside ? -a * Math.min(Math.exp(detached - proximal), 1.3) * current : 0;
                }),
                true,
                false);
    }

    private static TwinnedObjective dppoKl() {
        return new TwinnedObjective(
                "DPPO-KL",
                new DppoKl(ANY, 0.01, 0.02, 1.3),
                MEAN,
                NaiveLoss.tokenwise(MEAN, (current, detached, proximal, a) -> {
                    double p = Math.exp(proximal);
                    double q = Math.exp(detached);
                    double divergence = p * Math.log(p / q) + (1 - p) * Math.log((1 - p) / (1 - q));
                    boolean away = a > 0 ? q > p && divergence > 0.02 : q < p && divergence > 0.01;
                    return away ? 0 : -a * Math.min(q / p, 1.3) * current;
                }),
                true,
                false);
    }

    interface SequenceFormula {
        double loss(double logRatioSum, int trained, double advantage);
    }

    /** Coefficient times sum of weights times the formula of summed log ratio and mean advantage. */
    private static NaiveLoss sequencewise(
            LossAggregation aggregation, SequenceFormula formula, Function<RandomInput, float[]> anchor) {
        return (in, current, detached) -> {
            double[] coefficients = aggregation.coefficients(in.batch());
            double loss = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                double logRatio = 0;
                double advantage = 0;
                double weight = 0;
                for (int t : trained(in, s)) {
                    logRatio += current[t] - anchor.apply(in)[t];
                    advantage += in.advantages()[t];
                    weight += in.weights()[t];
                }
                int n = in.batch().trainedTokens(s);
                loss += n == 0 ? 0 : coefficients[s] * weight * formula.loss(logRatio, n, advantage / n);
            }
            return loss;
        };
    }

    /** The regions are solved for outside; here the Lagrangian at them. */
    private static TwinnedObjective quatro() {
        QueryMultipliers multipliers = new QueryMultipliers(0.05, 0.1);
        NaiveLoss twin = (in, current, detached) -> {
            double loss = 0;
            int counted = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                int n = in.batch().trainedTokens(s);
                if (n == 0) {
                    continue;
                }
                counted++;
                double logRatio = 0;
                double weight = 0;
                for (int t : trained(in, s)) {
                    logRatio += current[t] - in.behavior()[t];
                    weight += in.weights()[t];
                }
                int group = in.batch().group(s);
                QueryTrustRegion region = multipliers.solve(IntStream.range(
                                0, in.batch().sequenceCount())
                        .filter(i -> in.batch().group(i) == group && in.batch().trainedTokens(i) > 0)
                        .mapToDouble(i -> meanAdvantage(in, i))
                        .toArray());
                double ratio = Math.exp(logRatio);
                loss -= weight
                        / n
                        * (ratio * (meanAdvantage(in, s) - region.offset())
                                - region.multiplier() * ratio * (logRatio - 1));
            }
            return loss / counted;
        };
        return new TwinnedObjective("QUATRO", new Quatro(0.05, 0.1), SEQUENCES, twin, false, false);
    }

    private static double meanAdvantage(RandomInput in, int s) {
        return Arrays.stream(trained(in, s))
                        .mapToDouble(t -> in.advantages()[t])
                        .sum()
                / in.batch().trainedTokens(s);
    }

    private static TwinnedObjective gspoToken() {
        NaiveLoss twin = (in, current, detached) -> {
            double[] coefficients = SEQUENCES.coefficients(in.batch());
            double loss = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                double mean = 0;
                for (int t : trained(in, s)) {
                    mean += (detached[t] - in.proximal()[t]) / in.batch().trainedTokens(s);
                }
                for (int t : trained(in, s)) {
                    double ratio = Math.exp(mean + current[t] - detached[t]);
                    loss += coefficients[s]
                            * in.weights()[t]
                            * surrogate(ratio, in.advantages()[t], Double.POSITIVE_INFINITY);
                }
            }
            return loss;
        };
        return new TwinnedObjective("GSPO-token", new GspoToken(ANY, 0.2, 0.28), SEQUENCES, twin, true, false);
    }

    private static TwinnedObjective ctpo() {
        NaiveLoss twin = (in, current, detached) -> {
            double[] coefficients = MEAN.coefficients(in.batch());
            double loss = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                int[] prefix = trained(in, s);
                for (int n = 1; n <= prefix.length; n++) {
                    double log = current[prefix[n - 1]] - detached[prefix[n - 1]];
                    for (int i = 0; i < n; i++) {
                        log += detached[prefix[i]] - in.proximal()[prefix[i]];
                    }
                    double a = in.advantages()[prefix[n - 1]];
                    double band = Math.min(Math.max(log, -0.2 * Math.sqrt(n)), 0.28 * Math.sqrt(n));
                    double surrogate = Math.max(-a * Math.exp(log), -a * Math.exp(band));
                    loss += coefficients[s]
                            * in.weights()[prefix[n - 1]]
                            * (a < 0 ? Math.min(surrogate, -a * Math.exp(0.3 * Math.sqrt(n))) : surrogate);
                }
            }
            return loss;
        };
        return new TwinnedObjective("CTPO", new Ctpo(ANY, 0.2, 0.28, 0.3), MEAN, twin, true, false);
    }

    private static TwinnedObjective gmpo() {
        NaiveLoss twin = (in, current, detached) -> {
            double loss = 0;
            int counted = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                int n = in.batch().trainedTokens(s);
                counted += n > 0 ? 1 : 0;
                double logSum = 0;
                double advantage = 0;
                double logWeight = 0;
                for (int t : trained(in, s)) {
                    double delta = current[t] - in.proximal()[t];
                    double sign = Math.signum(in.advantages()[t]);
                    logSum += sign * Math.min(sign * delta, sign * Math.min(Math.max(delta, -0.2), 0.28));
                    advantage += in.advantages()[t];
                    logWeight += Math.log(in.weights()[t]);
                }
                loss += n == 0 ? 0 : -advantage / n * Math.exp(logSum / n) * Math.exp(logWeight / n);
            }
            return loss / counted;
        };
        return new TwinnedObjective("GMPO", new Gmpo(ANY, 0.2, 0.28), SEQUENCES, twin, false, false);
    }

    private static TwinnedObjective topr() {
        LossAggregation aggregation = new LossAggregation.SeqMeanTokenSum();
        NaiveLoss twin = (in, current, detached) -> {
            double[] coefficients = aggregation.coefficients(in.batch());
            double loss = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                double logRatio = 0;
                for (int t : trained(in, s)) {
                    logRatio += detached[t] - in.behavior()[t];
                }
                for (int t : trained(in, s)) {
                    float weight = (float) (in.advantages()[t] < 0 ? Math.min(1, Math.exp(logRatio)) : 1);
                    float weightAsHeld = (float) (weight * (double) in.weights()[t]);
                    loss -= coefficients[s] * weightAsHeld * in.advantages()[t] * current[t];
                }
            }
            return loss;
        };
        return new TwinnedObjective("TOPR", new Topr(), aggregation, twin, true, true);
    }

    private static TwinnedObjective aspo() {
        return signed("ASPO", new Aspo(0.2, 0.28, 1.5), (ratio, a) -> {
            boolean clipped = a >= 0 ? ratio > 1.28 : ratio < 0.8;
            return clipped ? 0 : Math.min(a >= 0 ? 1 / ratio : ratio, 1.5);
        });
    }

    private static TwinnedObjective dispo() {
        return signed(
                "DISPO",
                new Dispo(0.9, 2, 0.7, 1.1),
                (ratio, a) -> a >= 0 ? Math.min(Math.max(ratio, 0.9), 2) : Math.min(Math.max(ratio, 0.7), 1.1));
    }

    interface SignedWeight {
        double of(double ratio, double advantage);
    }

    /** The policy gradient under weights that a ratio to the behavior policy and a sign decide. */
    private static TwinnedObjective signed(String name, Objective objective, SignedWeight rule) {
        NaiveLoss twin = (in, current, detached) -> {
            double loss = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                for (int t : trained(in, s)) {
                    double ratio = Math.exp(detached[t] - in.behavior()[t]);
                    float weight = (float) rule.of(ratio, in.advantages()[t]);
                    float weightAsHeld = (float) (weight * (double) in.weights()[t]);
                    loss -= (double) weightAsHeld * in.advantages()[t] * current[t];
                }
            }
            return loss / in.batch().trainedTokens();
        };
        return new TwinnedObjective(name, objective, MEAN, twin, true, false);
    }

    private static TwinnedObjective ipo() {
        NaiveLoss twin = (in, current, detached) -> {
            double loss = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                for (int t : trained(in, s)) {
                    double logRatio = current[t] - in.behavior()[t];
                    boolean kept = Math.abs(Math.exp(detached[t]) - Math.exp(in.behavior()[t])) <= 0.1;
                    double token = -in.advantages()[t] * Math.exp(logRatio) + 0.2 * logRatio * logRatio;
                    loss += kept ? in.weights()[t] * token : 0;
                }
            }
            return loss / in.batch().trainedTokens();
        };
        return new TwinnedObjective("IPO", new Ipo(0.1, 0.2), MEAN, twin, true, false);
    }

    private static TwinnedObjective p3o() {
        NaiveLoss twin = (in, current, detached) -> {
            int[] trained = IntStream.range(0, current.length)
                    .filter(in.batch()::isTrained)
                    .toArray();
            double sum = Arrays.stream(trained)
                    .mapToDouble(t -> Math.exp(detached[t] - in.proximal()[t]))
                    .sum();
            double squares = Arrays.stream(trained)
                    .mapToDouble(t -> Math.exp(2 * (detached[t] - in.proximal()[t])))
                    .sum();
            double ess = sum * sum / squares / trained.length;
            double loss = 0;
            for (int t : trained) {
                double weight = Math.min(Math.exp(detached[t] - in.proximal()[t]), ess);
                double x = current[t] - in.proximal()[t];
                loss += in.weights()[t]
                        * (-weight * in.advantages()[t] * current[t] + (1 - ess) * (x + Math.exp(-x) - 1));
            }
            return loss / trained.length;
        };
        return new TwinnedObjective("P3O", new P3o(ANY), MEAN, twin, true, false);
    }

    private static TwinnedObjective vespo() {
        NaiveLoss twin = (in, current, detached) -> {
            double loss = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                double weight = 1;
                for (int t : trained(in, s)) {
                    weight *= Math.exp(detached[t] - in.behavior()[t]);
                }
                weight = Math.max(1e-8, weight);
                boolean up = in.batch().trainedTokens(s) > 0 && meanAdvantage(in, s) >= 0;
                double k = up ? 2 : 3;
                double lambda = up ? 3 : 2;
                double shaped = Math.exp(lambda) * Math.pow(weight, k) * Math.exp(-lambda * weight);
                for (int t : trained(in, s)) {
                    loss -= in.weights()[t] * shaped * in.advantages()[t] * current[t];
                }
            }
            return loss / in.batch().trainedTokens();
        };
        return new TwinnedObjective("VESPO", Vespo.defaults(), MEAN, twin, true, false);
    }

    interface CovarianceToken {
        double loss(double current, double proximal, double advantage, boolean selected);
    }

    private static double klCovToken(double current, double proximal, double a, boolean selected) {
        return -a * Math.exp(current - proximal) + (selected ? 0.1 * Math.abs(current - proximal) : 0);
    }

    private static double clipCovToken(double current, double proximal, double a, boolean selected) {
        return selected ? 0 : surrogate(Math.exp(current - proximal), a, Double.POSITIVE_INFINITY);
    }

    /** A twin that selects the {@code share} of tokens with the largest covariance in a band. */
    private static TwinnedObjective covariance(
            String name,
            Objective objective,
            CovarianceToken token,
            double share,
            double low,
            double high,
            boolean unclippedOnly) {
        NaiveLoss twin = (in, current, detached) -> {
            int[] trained = IntStream.range(0, current.length)
                    .filter(in.batch()::isTrained)
                    .toArray();
            double meanA = Arrays.stream(trained)
                    .mapToDouble(t -> in.advantages()[t])
                    .average()
                    .orElseThrow();
            double meanLogProb = Arrays.stream(trained)
                    .mapToDouble(t -> detached[t])
                    .average()
                    .orElseThrow();
            Set<Integer> selected = Arrays.stream(trained)
                    .boxed()
                    .filter(t -> {
                        double ratio = Math.exp(detached[t] - in.proximal()[t]);
                        double c = (in.advantages()[t] - meanA) * (detached[t] - meanLogProb);
                        boolean free = in.advantages()[t] > 0 ? ratio <= 1.28 : ratio >= 0.8;
                        return c > low && c < high && (free || !unclippedOnly);
                    })
                    .sorted(Comparator.comparingDouble(
                            t -> -(in.advantages()[t] - meanA) * (detached[t] - meanLogProb)))
                    .limit(Math.max(1, (int) (share * trained.length)))
                    .collect(Collectors.toSet());
            double loss = 0;
            for (int t : trained) {
                loss += (double) in.weights()[t]
                        / trained.length
                        * token.loss(current[t], in.proximal()[t], in.advantages()[t], selected.contains(t));
            }
            return loss;
        };
        return new TwinnedObjective(name, objective, MEAN, twin, true, false);
    }

    private static int[] trained(RandomInput in, int s) {
        return IntStream.range(in.batch().start(s), in.batch().end(s))
                .filter(in.batch()::isTrained)
                .toArray();
    }

    private static TwinnedObjective policyGradient() {
        LossAggregation aggregation = new LossAggregation.SeqMeanTokenSum();
        return new TwinnedObjective(
                "policy gradient",
                new Reinforce(),
                aggregation,
                NaiveLoss.tokenwise(aggregation, (current, detached, proximal, a) -> -a * current),
                false,
                false);
    }
}
