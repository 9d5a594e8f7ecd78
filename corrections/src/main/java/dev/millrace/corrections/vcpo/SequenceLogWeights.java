package dev.millrace.corrections.vcpo;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;

/**
 * Log importance weights of whole sequences, {@code log w_i = sum over trained tokens of log rho}.
 *
 * <p>Unit: sequence. They stay in log space: a sum of a thousand tokens overflows {@code exp} long before it stops
 * being meaningful.
 */
public final class SequenceLogWeights {
    private SequenceLogWeights() {}

    /**
     * One log weight per sequence that has a trained token, in order; the others carry no gradient and no weight, so
     * the result may be shorter than the batch.
     *
     * @param ratio the policy whose gradient is wanted over the one that sampled
     * @throws NonFiniteLogProbException naming sequence and token
     */
    public static double[] ofTrainedSequences(TokenBatch batch, LogRatio ratio) {
        ratio.requireFits(batch);
        double[] weights = new double[batch.sequenceCount()];
        int count = 0;
        for (int s = 0; s < weights.length; s++) {
            if (batch.trainedTokens(s) > 0) {
                double sum = ratio.sum(batch, s);
                if (!Double.isFinite(sum)) { // sums of finite floats cannot overflow a double
                    ratio.requireFinite(batch);
                }
                weights[count++] = sum;
            }
        }
        return Arrays.copyOf(weights, count);
    }
}
