package dev.millrace.generator.sampling;

import java.util.Arrays;

/**
 * The tokens behind a prompt: which they are, who wrote them, and what the policy gave those that it wrote. What an environment said has log-probs
 * of 0.
 */
final class ResponseTokens {
    private static final int INITIAL = 64;

    private final int most;
    private int[] tokens;
    private byte[] mask;
    private float[] logProbs;
    private float[] temperedLogProbs;
    private int length;

    /** @param most that there may be */
    ResponseTokens(int most) {
        this.most = most;
        int initial = Math.min(most, INITIAL);
        this.tokens = new int[initial];
        this.mask = new byte[initial];
        this.logProbs = new float[initial];
        this.temperedLogProbs = new float[initial];
    }

    /**
     * The policy wrote one.
     *
     * @param logProb under the distribution it was sampled from
     * @param temperedLogProb under the one before truncation
     */
    void sampled(int token, float logProb, float temperedLogProb) {
        append(token, (byte) 1, logProb, temperedLogProb);
    }

    /** The environment said some. */
    void said(int[] said) {
        for (int token : said) {
            append(token, (byte) 0, 0f, 0f);
        }
    }

    private void append(int token, byte trained, float logProb, float temperedLogProb) {
        if (length == tokens.length) {
            int larger = Math.min(most, 2 * length);
            tokens = Arrays.copyOf(tokens, larger);
            mask = Arrays.copyOf(mask, larger);
            logProbs = Arrays.copyOf(logProbs, larger);
            temperedLogProbs = Arrays.copyOf(temperedLogProbs, larger);
        }
        tokens[length] = token;
        mask[length] = trained;
        logProbs[length] = logProb;
        temperedLogProbs[length] = temperedLogProb;
        length++;
    }

    int length() {
        return length;
    }

    /** Whether so many more have room. */
    boolean fit(int more) {
        return length + more <= most;
    }

    boolean isFull() {
        return length == most;
    }

    int token(int position) {
        return tokens[position];
    }

    boolean byPolicy(int position) {
        return mask[position] != 0;
    }

    int[] tokens() {
        return Arrays.copyOf(tokens, length);
    }

    byte[] mask() {
        return Arrays.copyOf(mask, length);
    }

    float[] logProbs() {
        return Arrays.copyOf(logProbs, length);
    }

    float[] temperedLogProbs() {
        return Arrays.copyOf(temperedLogProbs, length);
    }
}
