package dev.millrace.policy.decoder;

/**
 * Scaling of a decoder's rotary frequencies beyond the positions of its original training.
 *
 * <p>Each kind gives the frequency of every pair of a head, from the plain ones {@code theta^(-2i/headSize)}. Computed in double
 * precision by {@link StrictMath}, so that they are the same everywhere.
 */
public sealed interface RopeScaling {

    /**
     * Radians per position of each pair: [headSize/2].
     *
     * @param theta base of the plain frequencies
     */
    double[] frequencies(double theta, int headSize);

    /** Factor on both tables, cosine and sine. */
    default double attentionFactor() {
        return 1;
    }

    private static double[] plain(double theta, int headSize) {
        double[] frequencies = new double[headSize / 2];
        for (int i = 0; i < frequencies.length; i++) {
            frequencies[i] = StrictMath.pow(theta, -2.0 * i / headSize);
        }
        return frequencies;
    }

    private static void requirePositive(String name, double value) {
        if (!(value > 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(name + " must be finite and above 0: " + name + "=" + value);
        }
    }

    /** The plain frequencies. */
    record None() implements RopeScaling {
        public static None defaults() {
            return new None();
        }

        @Override
        public double[] frequencies(double theta, int headSize) {
            return plain(theta, headSize);
        }
    }

    /**
     * Position interpolation: every frequency divided by one factor (Chen et al. 2023).
     *
     * @param factor factor on the positions
     */
    record Linear(double factor) implements RopeScaling {
        public Linear {
            requirePositive("factor", factor);
        }

        public static Linear defaults() {
            return new Linear(2);
        }

        @Override
        public double[] frequencies(double theta, int headSize) {
            double[] frequencies = plain(theta, headSize);
            for (int i = 0; i < frequencies.length; i++) {
                frequencies[i] /= factor;
            }
            return frequencies;
        }
    }

    /**
     * Llama 3.1's: high frequencies stay, low ones are divided by the factor, and those between are interpolated
     * smoothly.
     *
     * @param factor divisor of slow frequencies
     * @param lowFreqFactor turns below which a frequency is slow
     * @param highFreqFactor turns from which a frequency is unchanged
     * @param originalMaxPositions positions of the first training
     */
    record Llama3(double factor, double lowFreqFactor, double highFreqFactor, int originalMaxPositions)
            implements RopeScaling {
        public Llama3 {
            requirePositive("factor", factor);
            requirePositive("lowFreqFactor", lowFreqFactor);
            requirePositive("originalMaxPositions", originalMaxPositions);
            if (!(highFreqFactor > lowFreqFactor && highFreqFactor < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("highFreqFactor must be finite and above lowFreqFactor="
                        + lowFreqFactor + ": highFreqFactor=" + highFreqFactor);
            }
        }

        public static Llama3 defaults() {
            return new Llama3(8, 1, 4, 8192);
        }

        @Override
        public double[] frequencies(double theta, int headSize) {
            double[] frequencies = plain(theta, headSize);
            for (int i = 0; i < frequencies.length; i++) {
                double turns = originalMaxPositions * frequencies[i] / (2 * Math.PI);
                double kept = (turns - lowFreqFactor) / (highFreqFactor - lowFreqFactor);
                double share = Math.min(1, Math.max(0, kept));
                frequencies[i] *= share + (1 - share) / factor;
            }
            return frequencies;
        }
    }

    /**
     * YaRN (Peng et al. 2023): high-frequency pairs stay, low-frequency ones are divided by the factor, with a linear
     * ramp between; and the tables are multiplied by a factor that sharpens attention.
     *
     * @param factor divisor of slow frequencies
     * @param originalMaxPositions positions of the first training
     * @param betaFast turns from which a pair is unchanged
     * @param betaSlow turns up to which the full factor applies
     * @param attentionFactor factor on the tables; the paper has {@code 0.1 ln(factor) + 1}
     * @param truncate round the ramp's ends to whole pairs
     */
    record Yarn(
            double factor,
            int originalMaxPositions,
            double betaFast,
            double betaSlow,
            double attentionFactor,
            boolean truncate)
            implements RopeScaling {
        /** So that a ramp of no width is a step. */
        private static final double NARROWEST_RAMP = 0.001;

        public Yarn {
            requirePositive("factor", factor);
            requirePositive("originalMaxPositions", originalMaxPositions);
            requirePositive("betaSlow", betaSlow);
            requirePositive("attentionFactor", attentionFactor);
            if (!(betaFast >= betaSlow && betaFast < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException(
                        "betaFast must be finite and at least betaSlow=" + betaSlow + ": betaFast=" + betaFast);
            }
        }

        public static Yarn defaults() {
            return new Yarn(4, 32_768, 32, 1, paperFactor(4), true);
        }

        /** The paper's factor of the tables. */
        public static double paperFactor(double factor) {
            return factor <= 1 ? 1 : 0.1 * StrictMath.log(factor) + 1;
        }

        @Override
        public double[] frequencies(double theta, int headSize) {
            double[] frequencies = plain(theta, headSize);
            double low = pairThatTurns(betaFast, theta, headSize);
            double high = pairThatTurns(betaSlow, theta, headSize);
            low = Math.max(truncate ? Math.floor(low) : low, 0);
            high = Math.min(truncate ? Math.ceil(high) : high, headSize - 1);
            double width = low == high ? NARROWEST_RAMP : high - low;
            for (int i = 0; i < frequencies.length; i++) {
                double divided = Math.min(1, Math.max(0, (i - low) / width));
                frequencies[i] *= 1 - divided + divided / factor;
            }
            return frequencies;
        }

        /**
         * Returns the fractional index, from 0, of the pair that makes {@code turns} turns within the positions of the
         * original training.
         */
        private double pairThatTurns(double turns, double theta, int headSize) {
            return headSize
                    * StrictMath.log(originalMaxPositions / (turns * 2 * Math.PI))
                    / (2 * StrictMath.log(theta));
        }
    }
}
