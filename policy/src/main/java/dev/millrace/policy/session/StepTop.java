package dev.millrace.policy.session;

import java.util.Arrays;

/**
 * The likeliest tokens of each step of a call.
 *
 * @param ids        [steps, slots, k]
 * @param logProbs   [steps, slots, k]
 * @param remainders [steps, slots], of all others together
 */
record StepTop(int k, long[] ids, float[] logProbs, float[] remainders) {

    /** The first {@code wanted} tokens of a step, at most k; the rest counts as remainder. */
    TopTokens at(int index, int wanted) {
        int from = index * k;
        int[] tokens =
                Arrays.stream(ids, from, from + wanted).mapToInt(id -> (int) id).toArray();
        double rest = Math.exp(remainders[index]);
        for (int i = from + wanted; i < from + k; i++) {
            rest += Math.exp(logProbs[i]);
        }
        return new TopTokens(
                tokens,
                Arrays.copyOfRange(logProbs, from, from + wanted),
                wanted == k ? remainders[index] : (float) Math.log(rest));
    }
}
