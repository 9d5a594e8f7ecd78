package dev.millrace.schemas.rollout;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;

/** Checks values: packed vectors with one element per token, rewards. */
public final class VectorCheck {
    /**
     * Smallest accepted log-prob.
     *
     * <p>A sampled token has a float32 probability above 0, so its log-prob is above -104. Other policies, and other temperatures than
     * the one it was sampled at, may give it a few times that. Placeholders for minus infinity, such as vLLM's -9999,
     * are far below. The ratio of two accepted log-probs and its square, at most e^700, are finite in double.
     */
    public static final float LEAST_LOG_PROB = -350f;

    /** Entropies and sums of squares are long float sums: rounding may move them out of range. */
    private static final float ROUNDING = 1e-3f;
    /** A log-prob renormalised after truncation is a difference of two floats: that of a certain token may miss 0 by this. */
    static final float LOG_PROB_ROUNDING = 1e-5f;

    private VectorCheck() {}

    /** Number of elements of a vector of 4-byte elements. */
    public static int elements(ByteBuffer packed, String field) throws RefusedException {
        if (packed.remaining() % Integer.BYTES != 0) {
            throw new RefusedException(
                    RefusalReason.LENGTHS,
                    field,
                    field + " must be a whole number of 4-byte elements: " + packed.remaining() + " bytes");
        }
        return packed.remaining() / Integer.BYTES;
    }

    /** Refuses a vector whose number of 4-byte elements differs from the number of response tokens. */
    public static void requireElements(ByteBuffer packed, int tokens, String field) throws RefusedException {
        requireSame(elements(packed, field), tokens, field);
    }

    public static void requireSame(int elements, int tokens, String field) throws RefusedException {
        if (elements != tokens) {
            throw new RefusedException(
                    RefusalReason.LENGTHS,
                    field,
                    field + " must have one element per response token: " + elements + " elements, " + tokens
                            + " tokens");
        }
    }

    /** Refuses token ids below 0, and at or above the vocabulary's size if that is known (not 0). */
    public static void requireTokenIds(ByteBuffer packed, int vocabularySize, String field) throws RefusedException {
        IntBuffer ids = packed.duplicate().order(ByteOrder.LITTLE_ENDIAN).asIntBuffer();
        for (int i = 0; i < ids.limit(); i++) {
            int id = ids.get(i);
            if (id < 0 || vocabularySize > 0 && id >= vocabularySize) {
                throw new RefusedException(
                        RefusalReason.TOKENS,
                        field + "[" + i + "]",
                        "a token id is at least 0" + (vocabularySize > 0 ? " and below " + vocabularySize : "") + ": "
                                + id);
            }
        }
    }

    /** Refuses a temperature at which an engine cannot sample or score, in single precision. */
    public static void requireTemperature(double temperature, String field) throws RefusedException {
        float taken = (float) temperature;
        if (!(taken > 0f && taken < Float.POSITIVE_INFINITY)) {
            throw new RefusedException(
                    RefusalReason.SAMPLING, field, "temperature must be finite and greater than 0: " + temperature);
        }
    }

    /** Refuses anything but 0 and 1. */
    public static void requireMask(ByteBuffer mask) throws RefusedException {
        for (int i = 0; i < mask.remaining(); i++) {
            byte value = mask.get(mask.position() + i);
            if (value != 0 && value != 1) {
                throw new RefusedException(RefusalReason.MASK, "mask[" + i + "]", "a mask value is 0 or 1: " + value);
            }
        }
    }

    /** Refuses log-probs outside [{@link #LEAST_LOG_PROB}, 0] where the mask is 1; other positions are not checked. */
    public static void requireLogProbs(ByteBuffer packed, ByteBuffer mask, String field) throws RefusedException {
        FloatBuffer logProbs = floats(packed);
        for (int i = 0; i < logProbs.limit(); i++) {
            if (mask.get(mask.position() + i) == 1) {
                requireLogProb(logProbs.get(i), i, field);
            }
        }
    }

    /** Refuses log-probs outside [{@link #LEAST_LOG_PROB}, 0], at any position. */
    public static void requireLogProbs(ByteBuffer packed, String field) throws RefusedException {
        FloatBuffer logProbs = floats(packed);
        for (int i = 0; i < logProbs.limit(); i++) {
            requireLogProb(logProbs.get(i), i, field);
        }
    }

    /** Refuses values outside [0, max], with a tolerance for rounding. */
    public static void requireMoments(ByteBuffer packed, float max, String field) throws RefusedException {
        FloatBuffer values = floats(packed);
        for (int i = 0; i < values.limit(); i++) {
            float value = values.get(i);
            if (!(value >= -ROUNDING && value <= max + ROUNDING && value < Float.POSITIVE_INFINITY)) {
                throw new RefusedException(
                        RefusalReason.MOMENTS,
                        field + "[" + i + "]",
                        "a value must be finite and in [0, "
                                + (max == Float.POSITIVE_INFINITY ? "infinity)" : max + "]") + ": " + value);
            }
        }
    }

    public static void requireFinite(ByteBuffer packed, String field) throws RefusedException {
        FloatBuffer values = floats(packed);
        for (int i = 0; i < values.limit(); i++) {
            if (!Float.isFinite(values.get(i))) {
                throw new RefusedException(
                        RefusalReason.VECTORS, field + "[" + i + "]", "a value must be finite: " + values.get(i));
            }
        }
    }

    /** Refuses a reward that is not finite or larger than {@code max} in magnitude. */
    public static void requireReward(double reward, double max) throws RefusedException {
        if (!(Math.abs(reward) <= max)) {
            throw new RefusedException(
                    RefusalReason.REWARD,
                    "reward",
                    "a reward must be finite and at most " + max + " in magnitude: " + reward);
        }
    }

    private static void requireLogProb(float logProb, int token, String field) throws RefusedException {
        if (!(logProb <= LOG_PROB_ROUNDING && logProb >= LEAST_LOG_PROB)) { // negated so that NaN is refused too
            throw new RefusedException(
                    RefusalReason.LOG_PROBS,
                    field + "[" + token + "]",
                    "a log-prob must be in [" + LEAST_LOG_PROB + ", 0]: " + logProb);
        }
    }

    private static FloatBuffer floats(ByteBuffer packed) {
        return packed.duplicate().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    }
}
