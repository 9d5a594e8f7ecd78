package dev.millrace.corrections.rollout;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ForkJoinPool;

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
 * <p>Immutable and thread-safe. O(tokens) time; allocates the outputs, a few numbers per sequence, and one block per
 * worker. The parallel form returns the same bits as the sequential one.
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
        Walk walk = new Walk(batch, ratio);
        walk.sequences(0, batch.sequenceCount());
        return walk.result();
    }

    /**
     * Corrects {@code batch} on {@code workers} threads of {@code pool}, the caller included if it is one of them.
     *
     * <p>Sequences are split into runs of about equal numbers of tokens, so a batch of few sequences gains little. The
     * call returns when every run is done; a failure of one is thrown after that.
     *
     * @param workers at least 1
     */
    public RolloutCorrectionResult apply(TokenBatch batch, LogRatio ratio, ForkJoinPool pool, int workers) {
        if (workers < 1) {
            throw new IllegalArgumentException("workers must be at least 1: " + workers);
        }
        Walk walk = new Walk(batch, ratio);
        pool.invoke(new SequenceSplit(batch, workers, walk::sequences));
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

        /** Walks the sequences {@code [from, to)}; runs that do not overlap may be walked at once. */
        void sequences(int from, int to) {
            TokenBlock block = new TokenBlock();
            for (int s = from; s < to; s++) {
                for (int t = batch.start(s); t < batch.end(s); t += TokenBlock.CAPACITY) {
                    block.load(batch, ratio, s, t, Math.min(t + TokenBlock.CAPACITY, batch.end(s)));
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
            offPolicy.report(config.semantics(), true, metrics);
            return new RolloutCorrectionResult(
                    weights.map(pass -> pass.weights), mask, totals.tokens(), totals.sequences(), metrics.asMap());
        }

        private void reportWeights(WeightPass pass, MetricMap metrics) {
            pass.report(config.semantics(), metrics);
            if (config.batchNormalize()) {
                metrics.put("rollout_is_batch_norm_factor", BatchNormalization.normalize(pass, config.semantics()));
            }
        }
    }
}
