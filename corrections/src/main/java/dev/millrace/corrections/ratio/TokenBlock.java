package dev.millrace.corrections.ratio;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.rollout.RejectionRule;

/**
 * The trained tokens among at most {@value #CAPACITY} packed tokens of one sequence, packed in double, with their log
 * ratios and ratios. The passes over a batch work on it.
 *
 * <p>Closing the gaps first means that no later pass looks at a mask, and that the values of context tokens never enter
 * the arithmetic. A block and its arrays (about 18 KB) stay in the first-level cache. The arrays belong to the block:
 * passes read the first {@link #size()} elements and may overwrite {@link #scratch}, no other.
 *
 * <p>Reused from block to block, so it allocates once. Not thread-safe: one per worker.
 */
public final class TokenBlock {
    public static final int CAPACITY = 256;

    public final double[] target = new double[CAPACITY + 1];
    public final double[] sampler = new double[CAPACITY + 1];
    /** {@code target - sampler}. */
    public final double[] logRatio = new double[CAPACITY + 1];
    /** {@code e^bounded}. */
    public final double[] ratio = new double[CAPACITY + 1];
    /** {@code e^bounded - 1}. */
    public final double[] ratioLessOne = new double[CAPACITY + 1];
    /** {@code k3 = e^bounded - 1 - bounded}. */
    public final double[] k3 = new double[CAPACITY + 1];

    public final double[] scratch = new double[CAPACITY + 1];

    private final byte[] mask = new byte[CAPACITY];
    private final double[] moved = new double[CAPACITY + 1];
    private double[] bounded = logRatio;
    private int from;
    private int length;
    private int size;
    private boolean gapless;
    private double logRatioSum;
    private double ratioSum;
    private double ratioSquares;
    private double min;
    private double max;
    private boolean beyondBound;

    /**
     * Loads the packed tokens {@code [from, to)} of {@code sequence}.
     *
     * @throws NonFiniteLogProbException naming the first trained token of the range whose log-prob is not finite
     */
    public void load(TokenBatch batch, LogRatio ratios, int sequence, int from, int to) {
        this.from = from;
        this.length = to - from;
        this.gapless = batch.trainedTokens(sequence) == batch.length(sequence);
        if (gapless) {
            size = length;
            ratios.copyTarget(from, length, target);
            ratios.copySampler(from, length, sampler);
        } else {
            batch.copyMask(from, mask, 0, length);
            size = ratios.gatherTarget(from, length, mask, target);
            ratios.gatherSampler(from, length, mask, sampler);
        }
        subtractFrom(target, sampler, logRatio, size);
        logRatioSum = BlockSums.sum(logRatio, size);
        if (!Double.isFinite(logRatioSum)) { // sums of finite floats cannot overflow a double
            throw firstNonFinite(batch, ratios, sequence);
        }
        exponentiate();
    }

    private void exponentiate() {
        findExtremes();
        beyondBound = max > LogRatio.BOUND || min < -LogRatio.BOUND;
        bounded = logRatio;
        if (beyondBound) {
            for (int i = 0; i < size; i++) {
                moved[i] = LogRatio.bounded(logRatio[i]);
            }
            bounded = moved;
            min = LogRatio.bounded(min);
            max = LogRatio.bounded(max);
        }
        if (max <= BlockExp.SMALL && min >= -BlockExp.SMALL) {
            BlockExp.bothOfSmall(bounded, ratioLessOne, ratio, size);
        } else {
            BlockExp.both(bounded, ratioLessOne, ratio, size);
        }
        subtractFrom(ratioLessOne, bounded, k3, size);
        ratioSum = BlockSums.sum(ratio, size);
        ratioSquares = BlockSums.sumOfSquares(ratio, size);
    }

    private static void subtractFrom(double[] x, double[] y, double[] difference, int n) {
        for (int i = 0; i < n; i++) {
            difference[i] = x[i] - y[i];
        }
    }

    private void findExtremes() {
        max = BlockSums.max(logRatio, size);
        min = BlockSums.min(logRatio, size);
    }

    private NonFiniteLogProbException firstNonFinite(TokenBatch batch, LogRatio ratios, int sequence) {
        for (int t = from; t < from + length; t++) {
            if (batch.isTrained(t)) {
                try {
                    ratios.finiteAt(batch, sequence, t);
                } catch (NonFiniteLogProbException found) {
                    return found;
                }
            }
        }
        throw new AssertionError("a sum of finite log ratios is not finite: sequence=" + sequence);
    }

    public int size() {
        return size;
    }

    /** {@code logRatio} bounded to {@code [-20, 20]}; the same array unless {@link #beyondBound()}. */
    public double[] bounded() {
        return bounded;
    }

    /** Smallest of {@link #bounded()}; positive infinity without trained tokens. */
    public double min() {
        return min;
    }

    /** Largest of {@link #bounded()}; negative infinity without trained tokens. */
    public double max() {
        return max;
    }

    public double ratioSum() {
        return ratioSum;
    }

    public double ratioSquares() {
        return ratioSquares;
    }

    /** Returns whether a log ratio was moved by the bound. */
    public boolean beyondBound() {
        return beyondBound;
    }

    /** Computed by each call. */
    public double targetSum() {
        return BlockSums.sum(target, size);
    }

    /** Computed by each call. */
    public double samplerSum() {
        return BlockSums.sum(sampler, size);
    }

    public double logRatioSum() {
        return logRatioSum;
    }

    /**
     * Writes one value per trained token back to the packed tokens of the block, and 0 to its context.
     *
     * @param values one per trained token; its slot at {@link #size()} is read and must be finite
     */
    public void scatter(double[] values, float[] packed) {
        if (gapless) {
            for (int i = 0; i < length; i++) {
                packed[from + i] = (float) values[i];
            }
            return;
        }
        int n = 0;
        for (int i = 0; i < length; i++) {
            packed[from + i] = (float) values[n] * mask[i];
            n += mask[i];
        }
    }

    /** Clears the mask elements of the trained tokens whose {@code statistic} the rule does not keep. */
    public void clearWhere(double[] statistic, RejectionRule rule, byte[] packed) {
        int n = 0;
        for (int i = 0; i < length; i++) {
            boolean trained = gapless || mask[i] != 0;
            if (trained && !rule.keeps(statistic[n])) {
                packed[from + i] = 0;
            }
            n += trained ? 1 : 0;
        }
    }
}
