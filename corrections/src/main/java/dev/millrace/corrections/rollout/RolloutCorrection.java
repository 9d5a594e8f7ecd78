package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.ObjIntConsumer;

/**
 * Importance weights, rejection and every diagnostic of one batch in a single walk over its tokens: the fast form of
 * {@link dev.millrace.corrections.weights}, {@link dev.millrace.corrections.rollout} and the off-policy metrics.
 *
 * <p>A batch is taken in blocks of a few hundred trained tokens of one sequence, and everything the configuration asks
 * for is done to a block while it is in the cache. Weights are those of the classes above to 2e-14 before they are
 * rounded to float, masks are the same bit for bit.
 *
 * <p>Which ratio is corrected is the caller's: proximal or old against behavior when decoupled, current against
 * behavior in bypass mode.
 *
 * <p>Immutable and thread-safe. O(tokens) time; allocates the outputs, a few numbers per sequence, and one block.
 */
public final class RolloutCorrection {
    private final RolloutCorrectionConfig config;

    public RolloutCorrection(RolloutCorrectionConfig config) {
        this.config = config;
    }

    public RolloutCorrectionConfig config() {
        return config;
    }

    /**
     * Corrects {@code batch} on the calling thread.
     *
     * @param ratio the log ratio that is corrected for, one per packed token
     * @throws IllegalArgumentException if no token is trained, since no statistic of nothing is right; or if the
     *     lengths differ
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token
     */
    public RolloutCorrectionResult apply(TokenBatch batch, LogRatio ratio) {
        return apply(batch, ratio, (block, sequence) -> {});
    }

    /**
     * The same, for a caller that would go through the same ratios itself.
     *
     * @param first takes each block and its sequence before the correction does; may overwrite the block's scratch
     */
    public RolloutCorrectionResult apply(TokenBatch batch, LogRatio ratio, ObjIntConsumer<TokenBlock> first) {
        Walk walk = new Walk(batch, ratio);
        walk.sequences(first);
        return walk.result();
    }

    /** One batch on its way through the passes. */
    private final class Walk {
        private final TokenBatch batch;
        private final LogRatio ratio;
        private final byte[] mask;
        private final OffPolicyPass offPolicy;
        private final Optional<WeightPass> weights;
        private final List<RejectionPass> rejections = new ArrayList<>();
        private final BlockPass[] passes;

        Walk(TokenBatch batch, LogRatio ratio) {
            ratio.requireFits(batch);
            if (batch.trainedTokens() == 0) {
                throw new IllegalArgumentException("a correction needs at least one trained token: sequences="
                        + batch.sequenceCount() + ", tokens=" + batch.tokenCount());
            }
            this.batch = batch;
            this.ratio = ratio;
            this.mask = batch.mask();
            this.offPolicy = new OffPolicyPass(batch);
            this.weights = config.weights().map(this::weightPass);
            config.rejections().forEach(rule -> rejections.add(rejectionPass(rule)));
            List<BlockPass> all = new ArrayList<>(List.of(offPolicy));
            weights.ifPresent(all::add);
            all.addAll(rejections);
            this.passes = all.toArray(new BlockPass[0]);
        }

        private WeightPass weightPass(WeightRule rule) {
            float[] out = new float[batch.tokenCount()];
            return switch (rule.level()) {
                case TOKEN -> new TokenWeightPass(batch, rule, out);
                case SEQUENCE -> new SequenceWeightPass(batch, rule, out, offPolicy);
            };
        }

        private RejectionPass rejectionPass(RejectionRule rule) {
            return rule.aggregation() == RejectionAggregation.TOKEN
                    ? new TokenRejectionPass(batch, rule, mask)
                    : new SequenceRejectionPass(batch, ratio, rule, config.semantics(), mask);
        }

        void sequences(ObjIntConsumer<TokenBlock> first) {
            TokenBlock block = new TokenBlock();
            for (int s = 0; s < batch.sequenceCount(); s++) {
                for (int t = batch.start(s); t < batch.end(s); t += TokenBlock.CAPACITY) {
                    block.load(batch, ratio, s, t, Math.min(t + TokenBlock.CAPACITY, batch.end(s)));
                    first.accept(block, s);
                    for (BlockPass pass : passes) {
                        pass.block(block, s);
                    }
                }
                for (BlockPass pass : passes) {
                    pass.endOfSequence(s);
                }
            }
        }

        RolloutCorrectionResult result() {
            MetricMap metrics = new MetricMap("rollout_corr/");
            weights.ifPresent(pass -> reportWeights(pass, metrics));
            rejections.forEach(pass -> pass.report(config.semantics(), metrics));
            RejectionTotals totals = RejectionTotals.of(batch, mask, rejections);
            if (!rejections.isEmpty()) {
                totals.report(config.semantics(), metrics);
            }
            offPolicy.report(config.semantics(), metrics);
            return new RolloutCorrectionResult(
                    weights.map(pass -> pass.weights), mask, totals.tokens(), totals.sequences(), metrics.asMap());
        }

        private void reportWeights(WeightPass pass, MetricMap metrics) {
            pass.report(config.semantics(), metrics);
            if (config.batchNormalize()) {
                metrics.put("rollout_is_batch_norm_factor", normalize(pass, config.semantics()));
            }
        }
    }

    /**
     * Divides the weights of a batch by their mean, so that the loss keeps its scale regardless of the mismatch.
     *
     * @return what was divided by: the mean over tokens, or over sequences for sequence weights; 1 if there is
     *     nothing to divide by, see {@link Semantics}
     */
    private static double normalize(WeightPass pass, Semantics semantics) {
        double mean = pass.normalisationMean(semantics);
        if (!(mean > semantics.leastNormalizingMean())) {
            return 1.0;
        }
        float[] weights = pass.weights;
        for (int t = 0; t < weights.length; t++) {
            weights[t] = (float) (weights[t] / mean);
        }
        return mean;
    }

    /**
     * What all rules together rejected.
     *
     * @param trained trained tokens before
     * @param tokens of them, how many are rejected
     * @param sequences sequences that lost at least one
     * @param allSequences sequences of the batch, without a trained token included
     */
    record RejectionTotals(int trained, int tokens, int sequences, int allSequences, int trainedSequences) {

        /** @param mask what all {@code passes} left */
        static RejectionTotals of(TokenBatch batch, byte[] mask, List<RejectionPass> passes) {
            int tokens = 0;
            int sequences = 0;
            int trainedSequences = 0;
            for (int s = 0; s < batch.sequenceCount(); s++) {
                int lost = lost(batch, mask, s, passes);
                tokens += lost;
                sequences += lost > 0 ? 1 : 0;
                trainedSequences += batch.trainedTokens(s) > 0 ? 1 : 0;
            }
            return new RejectionTotals(
                    batch.trainedTokens(), tokens, sequences, batch.sequenceCount(), trainedSequences);
        }

        /** The mask is only looked at where several rules have each rejected some of a sequence's tokens. */
        private static int lost(TokenBatch batch, byte[] mask, int sequence, List<RejectionPass> passes) {
            int touching = 0;
            int most = 0;
            for (RejectionPass pass : passes) {
                touching += pass.rejected[sequence] > 0 ? 1 : 0;
                most = Math.max(most, pass.rejected[sequence]);
            }
            if (touching < 2 || most == batch.trainedTokens(sequence)) {
                return most;
            }
            int left = 0;
            for (int t = batch.start(sequence); t < batch.end(sequence); t++) {
                left += mask[t];
            }
            return batch.trainedTokens(sequence) - left;
        }

        void report(Semantics semantics, MetricMap metrics) {
            int counted = semantics.countsSequence(0) ? allSequences : trainedSequences;
            metrics.put("rollout_rs_masked_fraction", tokens / (trained + semantics.countEpsilon()));
            metrics.put("rollout_rs_seq_masked_fraction", sequences / (double) counted);
        }
    }

    /** Rejects the sequences whose sum, mean or maximum of divergences is outside the bounds. */
    static final class SequenceRejectionPass extends RejectionPass {
        private final LogRatio ratio;
        private final RejectionAggregation aggregation;
        private final double epsilon;
        private final double[] statistic;

        SequenceRejectionPass(TokenBatch batch, LogRatio ratio, RejectionRule rule, Semantics semantics, byte[] mask) {
            super(batch, rule, mask);
            this.ratio = ratio;
            this.aggregation = rule.aggregation();
            this.epsilon = semantics.countEpsilon();
            this.statistic = new double[batch.sequenceCount()];
            if (aggregation == RejectionAggregation.MAX) {
                Arrays.fill(statistic, Double.NEGATIVE_INFINITY);
            }
        }

        @Override
        public void block(TokenBlock block, int s) {
            int n = block.size();
            boolean k3 = rule.divergence() == RejectionDivergence.K3;
            double[] divergences = k3 ? block.k3 : divergences(block);
            if (aggregation == RejectionAggregation.MAX) {
                statistic[s] = Math.max(statistic[s], BlockSums.max(divergences, n));
            } else {
                statistic[s] += BlockSums.sum(divergences, n);
            }
        }

        @Override
        public void endOfSequence(int s) {
            if (batch.trainedTokens(s) == 0) {
                statistic[s] = 0.0;
                return;
            }
            statistic[s] = aggregated(statistic[s], s);
            if (rule.divergence() == RejectionDivergence.K3 && isNear(statistic[s])) {
                statistic[s] = aggregated(exact(s), s);
            }
            if (!rule.keeps(statistic[s])) {
                rejected[s] = batch.trainedTokens(s);
                Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
            }
        }

        private double aggregated(double sumOrMax, int s) {
            return aggregation == RejectionAggregation.MEAN ? sumOrMax / (batch.trainedTokens(s) + epsilon) : sumOrMax;
        }

        private double exact(int s) {
            double sum = 0;
            double max = Double.NEGATIVE_INFINITY;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double k3 = RejectionDivergence.K3.of(ratio.boundedAt(t));
                    sum += k3;
                    max = Math.max(max, k3);
                }
            }
            return aggregation == RejectionAggregation.MAX ? max : sum;
        }

        @Override
        void reportStatistic(Semantics semantics, String name, MetricMap metrics) {
            double tokens = batch.trainedTokens() + semantics.countEpsilon();
            double sum = 0;
            double clampedSum = 0;
            double clampedSquares = 0;
            for (int s = 0; s < statistic.length; s++) {
                int trained = batch.trainedTokens(s);
                double clamped = clamped(statistic[s]);
                sum += trained * statistic[s];
                clampedSum += trained * clamped;
                clampedSquares += trained * clamped * clamped;
            }
            SequenceStatistics statistics = new SequenceStatistics(batch, statistic, false);
            double mean = clampedSum / tokens;
            double variance = clampedSquares / tokens - mean * mean;
            metrics.put(name + "_mean", sum / tokens);
            metrics.put(name + "_max", statistics.max());
            metrics.put(name + "_min", statistics.min());
            metrics.put(name + "_fraction_high", statistics.fractionAbove(rule.max()));
            metrics.put(name + "_fraction_low", fractionLow(statistics.fractionBelow(rule.min())));
            metrics.put(name + "_std", batch.trainedTokens() > 1 ? Math.sqrt(Math.max(0.0, variance)) : 0.0);
            reportSequences(statistics, name, metrics);
        }
    }

    /** One weight per sequence, from the product of its ratios: truncated, or kept within a band and 0 outside. */
    static final class SequenceWeightPass extends WeightPass {
        private final OffPolicyPass offPolicy;
        private final double[] logProduct;

        /** @param offPolicy run before this pass; it has the sums of the log ratios */
        SequenceWeightPass(TokenBatch batch, WeightRule rule, float[] weights, OffPolicyPass offPolicy) {
            super(batch, rule, weights);
            this.offPolicy = offPolicy;
            this.logProduct = new double[batch.sequenceCount()];
        }

        @Override
        public void endOfSequence(int s) {
            int trained = batch.trainedTokens(s);
            logProduct[s] = offPolicy.logRatio(s);
            double bounded = LogRatio.bounded(logProduct[s]);
            double ratio = Math.exp(bounded);
            boolean above = bounded > logUpper;
            boolean below = bounded < logLower;
            double weight = isBand() ? above || below ? 0.0 : ratio : Math.min(ratio, rule.upper());
            high[s] = above ? trained : 0;
            low[s] = below ? trained : 0;
            ratioSum[s] = ratio * trained;
            weightSum[s] = weight * trained;
            weightSquares[s] = weight * weight * trained;
            float packed = (float) weight;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                weights[t] = batch.isTrained(t) ? packed : 0f;
            }
        }

        @Override
        void reportRange(Semantics semantics, MetricMap metrics) {
            SequenceStatistics logs = new SequenceStatistics(batch, logProduct, semantics.countsSequence(0));
            metrics.put("rollout_is_max", Math.exp(Math.min(logs.max(), LogRatio.BOUND)));
            metrics.put("rollout_is_min", Math.exp(logs.min()));
            metrics.put("rollout_is_ratio_fraction_high", logs.fractionAbove(logUpper));
            metrics.put("rollout_is_ratio_fraction_low", logs.fractionBelow(logLower));
        }

        @Override
        double normalisationMean(Semantics semantics) {
            double[] means = new double[weightSum.length];
            for (int s = 0; s < means.length; s++) {
                int trained = batch.trainedTokens(s);
                means[s] = trained == 0 ? 0.0 : weightSum[s] / (trained + semantics.countEpsilon());
            }
            return new SequenceStatistics(batch, means, false).mean();
        }
    }

    /** Rejects the tokens whose own divergence is outside the bounds. */
    static final class TokenRejectionPass extends RejectionPass {
        private final double[] sum;
        private final double[] clampedSum;
        private final double[] clampedSquares;
        private final double[] max;
        private final double[] min;
        private final int[] high;
        private final int[] low;

        TokenRejectionPass(TokenBatch batch, RejectionRule rule, byte[] mask) {
            super(batch, rule, mask);
            int sequences = batch.sequenceCount();
            this.sum = new double[sequences];
            this.clampedSum = new double[sequences];
            this.clampedSquares = new double[sequences];
            this.max = new double[sequences];
            this.min = new double[sequences];
            this.high = new int[sequences];
            this.low = new int[sequences];
            Arrays.fill(max, Double.NEGATIVE_INFINITY);
            Arrays.fill(min, Double.POSITIVE_INFINITY);
        }

        @Override
        public void block(TokenBlock block, int s) {
            int n = block.size();
            double[] statistic = divergences(block);
            if (rule.divergence() == RejectionDivergence.K3) {
                decideExactly(block, statistic, n);
            }
            sum[s] += BlockSums.sum(statistic, n);
            max[s] = Math.max(max[s], BlockSums.max(statistic, n));
            min[s] = Math.min(min[s], BlockSums.min(statistic, n));
            int above = BlockSums.countAbove(statistic, n, rule.max());
            int below = BlockSums.countBelow(statistic, n, rule.min());
            int outside = rule.isTwoSided() ? above + below : above;
            high[s] += above;
            low[s] += below;
            rejected[s] += outside;
            if (outside > 0) {
                block.clearWhere(statistic, rule, mask);
            }
            for (int i = 0; i < n; i++) {
                statistic[i] = clamped(statistic[i]);
            }
            clampedSum[s] += BlockSums.sum(statistic, n);
            clampedSquares[s] += BlockSums.sumOfSquares(statistic, n);
        }

        private void decideExactly(TokenBlock block, double[] statistic, int n) {
            for (int i = 0; i < n; i++) {
                if (isNear(statistic[i])) {
                    statistic[i] = RejectionDivergence.K3.of(block.bounded()[i]);
                }
            }
        }

        @Override
        void reportStatistic(Semantics semantics, String name, MetricMap metrics) {
            double tokens = batch.trainedTokens() + semantics.countEpsilon();
            metrics.put(name + "_mean", WeightPass.total(sum) / tokens);
            metrics.put(name + "_max", new SequenceStatistics(batch, max, false).max());
            metrics.put(name + "_min", new SequenceStatistics(batch, min, false).min());
            metrics.put(name + "_fraction_high", WeightPass.total(high) / tokens);
            metrics.put(name + "_fraction_low", fractionLow(WeightPass.total(low) / tokens));
            double mean = WeightPass.total(clampedSum) / tokens;
            double variance = WeightPass.total(clampedSquares) / tokens - mean * mean;
            metrics.put(name + "_std", batch.trainedTokens() > 1 ? Math.sqrt(Math.max(0.0, variance)) : 0.0);
            double[] means = new double[sum.length];
            for (int s = 0; s < means.length; s++) {
                means[s] = sum[s] / (batch.trainedTokens(s) + semantics.countEpsilon());
            }
            reportSequences(new SequenceStatistics(batch, means, false), name, metrics);
        }
    }

    /** One weight per token: {@code min(rho_t, upper)}, or {@code rho_t} within a band and 0 outside. */
    static final class TokenWeightPass extends WeightPass {
        private final double[] max;
        private final double[] min;

        TokenWeightPass(TokenBatch batch, WeightRule rule, float[] weights) {
            super(batch, rule, weights);
            this.max = new double[batch.sequenceCount()];
            this.min = new double[batch.sequenceCount()];
            Arrays.fill(max, Double.NEGATIVE_INFINITY);
            Arrays.fill(min, Double.POSITIVE_INFINITY);
        }

        @Override
        public void block(TokenBlock block, int s) {
            int above = 0;
            int below = 0;
            if (block.max() > logUpper || block.min() < logLower) {
                // in log space, where the bounded ratio is exact and its exponential is not
                above = BlockSums.countAbove(block.bounded(), block.size(), logUpper);
                below = BlockSums.countBelow(block.bounded(), block.size(), logLower);
            }
            high[s] += above;
            low[s] += below;
            ratioSum[s] += block.ratioSum();
            if (above == 0 && (below == 0 || !isBand())) {
                weightSum[s] += block.ratioSum();
                weightSquares[s] += block.ratioSquares();
                max[s] = Math.max(max[s], Math.exp(block.max()));
                min[s] = Math.min(min[s], Math.exp(block.min()));
                block.scatter(block.ratio, weights);
            } else {
                applyBounds(block, s);
            }
        }

        private void applyBounds(TokenBlock block, int s) {
            int n = block.size();
            double[] applied = block.scratch;
            if (isBand()) {
                maskOutside(block.bounded(), block.ratio, applied, n);
                max[s] = Math.max(max[s], BlockSums.max(applied, n));
                min[s] = 0.0;
            } else {
                truncate(block.ratio, applied, n, rule.upper());
                max[s] = rule.upper();
                min[s] = Math.min(min[s], Math.min(Math.exp(block.min()), rule.upper()));
            }
            weightSum[s] += BlockSums.sum(applied, n);
            weightSquares[s] += BlockSums.sumOfSquares(applied, n);
            block.scatter(applied, weights);
        }

        private static void truncate(double[] ratio, double[] applied, int n, double upper) {
            for (int i = 0; i < n; i++) {
                applied[i] = Math.min(ratio[i], upper);
            }
        }

        /** Without a branch: which tokens lie outside is what a branch predictor cannot know. */
        private void maskOutside(double[] bounded, double[] ratio, double[] applied, int n) {
            for (int i = 0; i < n; i++) {
                long outside = (Double.doubleToRawLongBits(bounded[i] - logLower + 0.0)
                                | Double.doubleToRawLongBits(logUpper - bounded[i] + 0.0))
                        >> 63; // all ones if one is below 0
                applied[i] = Double.longBitsToDouble(Double.doubleToRawLongBits(ratio[i]) & ~outside);
            }
        }

        @Override
        void reportRange(Semantics semantics, MetricMap metrics) {
            double tokens = batch.trainedTokens() + semantics.countEpsilon();
            metrics.put("rollout_is_ratio_fraction_high", total(high) / tokens);
            metrics.put("rollout_is_ratio_fraction_low", total(low) / tokens);
            metrics.put("rollout_is_max", new SequenceStatistics(batch, max, false).max());
            metrics.put("rollout_is_min", new SequenceStatistics(batch, min, false).min());
        }

        @Override
        double normalisationMean(Semantics semantics) {
            return total(weightSum) / (batch.trainedTokens() + semantics.countEpsilon());
        }
    }

    /**
     * Applies one rejection rule while the blocks go by: clears mask elements, and keeps per sequence what the metrics
     * need.
     *
     * <p>The block's k3 has a relative error of 1e-14, which could decide for a statistic that lies on its bound. So a
     * statistic next to its bound is computed again the exact way, and masks are those of the plain loop, bit for bit.
     */
    abstract static class RejectionPass implements BlockPass {
        /** Relative distance from a bound within which the vector code is not trusted to decide. */
        static final double NEAR = 1e-9;

        final TokenBatch batch;
        final RejectionRule rule;
        final byte[] mask;
        /** Trained tokens this rule rejects. */
        final int[] rejected;

        RejectionPass(TokenBatch batch, RejectionRule rule, byte[] mask) {
            this.batch = batch;
            this.rule = rule;
            this.mask = mask;
            this.rejected = new int[batch.sequenceCount()];
        }

        /** Writes the rule's divergence of every token of the block to its scratch array. */
        final double[] divergences(TokenBlock block) {
            int n = block.size();
            double[] out = block.scratch;
            double[] l = block.bounded();
            RejectionDivergence divergence = rule.divergence();
            switch (divergence) {
                case K1 -> {
                    for (int i = 0; i < n; i++) {
                        out[i] = -l[i];
                    }
                }
                case K2 -> {
                    for (int i = 0; i < n; i++) {
                        out[i] = 0.5 * l[i] * l[i];
                    }
                }
                case K3 -> System.arraycopy(block.k3, 0, out, 0, n);
            }
            return out;
        }

        final boolean isNear(double statistic) {
            return Math.abs(statistic - rule.max()) <= NEAR * Math.abs(rule.max())
                    || rule.isTwoSided() && Math.abs(statistic - rule.min()) <= NEAR * Math.abs(rule.min());
        }

        /** The level's own metrics, all but the rejected fractions. */
        abstract void reportStatistic(Semantics semantics, String name, MetricMap metrics);

        final void report(Semantics semantics, MetricMap metrics) {
            String name = "rollout_rs_" + rule.label();
            reportStatistic(semantics, name, metrics);
            metrics.put(
                    name + "_masked_fraction",
                    WeightPass.total(rejected) / (batch.trainedTokens() + semantics.countEpsilon()));
            double[] touched = new double[rejected.length];
            for (int s = 0; s < touched.length; s++) {
                touched[s] = rejected[s] > 0 ? 1.0 : 0.0;
            }
            metrics.put(name + "_seq_masked_fraction", new SequenceStatistics(batch, touched, false).mean());
        }

        /** Metrics of one statistic per sequence, over the sequences that have a trained token. */
        final void reportSequences(SequenceStatistics statistics, String name, MetricMap metrics) {
            metrics.put(name + "_seq_mean", statistics.mean());
            metrics.put(name + "_seq_std", statistics.standardDeviation());
            metrics.put(name + "_seq_max", statistics.max());
            metrics.put(name + "_seq_min", statistics.min());
            metrics.put(name + "_seq_max_deviation", statistics.maxDeviation(0.0));
            metrics.put(name + "_seq_fraction_high", statistics.fractionAbove(rule.max()));
            if (rule.isTwoSided()) {
                metrics.put(name + "_seq_fraction_low", statistics.fractionBelow(rule.min()));
            }
        }

        final double fractionLow(double low) {
            return rule.isTwoSided() ? low : 0.0;
        }

        /** The statistic moved into the rule's interval; k2 and k3 have 0 as the lower end. */
        final double clamped(double statistic) {
            return Math.min(Math.max(statistic, rule.min()), rule.max());
        }
    }
}
