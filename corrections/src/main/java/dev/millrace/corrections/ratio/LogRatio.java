package dev.millrace.corrections.ratio;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;

/**
 * A log probability ratio per token, {@code log rho_t = target_t - sampler_t}, with the names of its two policies.
 *
 * <p>A view: it holds the caller's two arrays (one log-prob per packed token, natural log of the sampled token) and
 * subtracts in double on access. A difference rounded to float would lose the precision of small ratios. The arrays
 * must not change while a method uses the view. Thread-safe under that condition.
 */
public final class LogRatio {
    /**
     * Largest magnitude that is exponentiated: ratios are bounded to {@code [e^-20, e^20]}, about 2e-9 to 4.9e8, before
     * any product, square or sum, so that one absurd token cannot turn a batch statistic into infinity. The same bound
     * as verl's.
     */
    public static final double BOUND = 20.0;

    private final RatioKind kind;
    private final String targetName;
    private final String samplerName;
    private final float[] target;
    private final float[] sampler;

    private LogRatio(RatioKind kind, String targetName, float[] target, String samplerName, float[] sampler) {
        if (target.length != sampler.length) {
            throw new IllegalArgumentException(targetName + " and " + samplerName + " log-probs need the same length: "
                    + target.length + " and " + sampler.length);
        }
        this.kind = kind;
        this.targetName = targetName;
        this.samplerName = samplerName;
        this.target = target;
        this.sampler = sampler;
    }

    public static LogRatio of(RatioKind kind, float[] target, float[] sampler) {
        return new LogRatio(kind, kind.target(), target, kind.sampler(), sampler);
    }

    /** old / behavior. */
    public static LogRatio engineMismatch(float[] old, float[] behavior) {
        return of(RatioKind.ENGINE_MISMATCH, old, behavior);
    }

    /** proximal / old. */
    public static LogRatio staleness(float[] proximal, float[] old) {
        return of(RatioKind.STALENESS, proximal, old);
    }

    /** proximal / behavior. */
    public static LogRatio anchor(float[] proximal, float[] behavior) {
        return of(RatioKind.ANCHOR, proximal, behavior);
    }

    /** current / proximal. */
    public static LogRatio trustRegion(float[] current, float[] proximal) {
        return of(RatioKind.TRUST_REGION, current, proximal);
    }

    /** current / behavior. */
    public static LogRatio full(float[] current, float[] behavior) {
        return of(RatioKind.FULL, current, behavior);
    }

    /** Sampler over target: the same two policies the other way round. */
    public LogRatio inverse() {
        return new LogRatio(kind, samplerName, sampler, targetName, target);
    }

    public RatioKind kind() {
        return kind;
    }

    public int tokenCount() {
        return target.length;
    }

    /** The log ratio at a packed token; unbounded, and not finite where a log-prob is not. */
    public double at(int token) {
        return (double) target[token] - sampler[token];
    }

    /** The log ratio bounded to {@code [-BOUND, BOUND]}. */
    public double boundedAt(int token) {
        return bounded(at(token));
    }

    /** {@code logRatio} bounded to {@code [-BOUND, BOUND]}. */
    public static double bounded(double logRatio) {
        return Math.max(-BOUND, Math.min(BOUND, logRatio));
    }

    /**
     * Copies the target's log-probs of the tokens {@code [from, from + length)} that {@code mask} marks to the front of
     * {@code into}, in order.
     *
     * @param mask one per token of the range: 1 = copied, 0 = left out
     * @param into at least {@code length + 1} slots; those behind the copied ones are scratch
     * @return how many were copied
     */
    public int gatherTarget(int from, int length, byte[] mask, double[] into) {
        return gather(target, from, length, mask, into);
    }

    /** As {@link #gatherTarget}, for the sampler. */
    public int gatherSampler(int from, int length, byte[] mask, double[] into) {
        return gather(sampler, from, length, mask, into);
    }

    private static int gather(float[] source, int from, int length, byte[] mask, double[] into) {
        int n = 0;
        for (int i = 0; i < length; i++) { // no branch: a random mask would cost a misprediction per token
            into[n] = source[from + i];
            n += mask[i];
        }
        return n;
    }

    /** Copies the target's log-probs of every token of {@code [from, from + length)} to the front of {@code into}. */
    public void copyTarget(int from, int length, double[] into) {
        for (int i = 0; i < length; i++) {
            into[i] = target[from + i];
        }
    }

    /** As {@link #copyTarget}, for the sampler. */
    public void copySampler(int from, int length, double[] into) {
        for (int i = 0; i < length; i++) {
            into[i] = sampler[from + i];
        }
    }

    /** The sum of the log ratios of a sequence's trained tokens; not finite where one of them is not. */
    public double sum(TokenBatch batch, int sequence) {
        double a = 0; // four chains: one would wait for the latency of every addition
        double b = 0;
        double c = 0;
        double d = 0;
        int end = batch.end(sequence);
        int t = batch.start(sequence);
        for (; t < end - 3; t += 4) {
            a += trainedAt(batch, t);
            b += trainedAt(batch, t + 1);
            c += trainedAt(batch, t + 2);
            d += trainedAt(batch, t + 3);
        }
        for (; t < end; t++) {
            a += trainedAt(batch, t);
        }
        return (a + b) + (c + d);
    }

    /** The sum of the squared log ratios of a sequence's trained tokens; not finite where one of them is not. */
    public double sumOfSquares(TokenBatch batch, int sequence) {
        double a = 0;
        double b = 0;
        double c = 0;
        double d = 0;
        int end = batch.end(sequence);
        int t = batch.start(sequence);
        for (; t < end - 3; t += 4) {
            double first = trainedAt(batch, t);
            double second = trainedAt(batch, t + 1);
            double third = trainedAt(batch, t + 2);
            double fourth = trainedAt(batch, t + 3);
            a += first * first;
            b += second * second;
            c += third * third;
            d += fourth * fourth;
        }
        for (; t < end; t++) {
            double last = trainedAt(batch, t);
            a += last * last;
        }
        return (a + b) + (c + d);
    }

    /**
     * Returns the log ratio, or 0 at a context token, regardless of its values. Branch-free, since a random mask would
     * cost a misprediction per token.
     */
    private double trainedAt(TokenBatch batch, int token) {
        return Double.longBitsToDouble(Double.doubleToRawLongBits(at(token)) & -(long) batch.trained(token));
    }

    public float targetAt(int token) {
        return target[token];
    }

    public float samplerAt(int token) {
        return sampler[token];
    }

    /**
     * The log ratio at a packed token that must be finite.
     *
     * @throws NonFiniteLogProbException naming the vector at fault, the sequence and the token in it
     */
    public double finiteAt(TokenBatch batch, int sequence, int token) {
        double logRatio = at(token);
        if (!Double.isFinite(logRatio)) {
            throw nonFinite(batch, sequence, token);
        }
        return logRatio;
    }

    public void requireFits(TokenBatch batch) {
        batch.requireLength(targetName + " and " + samplerName + " log-probs", tokenCount());
    }

    /** Refuses a batch of another size, and a non-finite log-prob at a trained token. */
    public void requireFinite(TokenBatch batch) {
        batch.requireFinite(targetName + " log-probs", target);
        batch.requireFinite(samplerName + " log-probs", sampler);
    }

    private NonFiniteLogProbException nonFinite(TokenBatch batch, int sequence, int token) {
        boolean targetAtFault = !Float.isFinite(target[token]);
        return new NonFiniteLogProbException(
                (targetAtFault ? targetName : samplerName) + " log-probs",
                sequence,
                token - batch.start(sequence),
                targetAtFault ? target[token] : sampler[token]);
    }
}
