package dev.millrace.corrections.filter;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Objects;
import java.util.Set;

/**
 * Rejects tokens or sequences at random, where a uniform {@code u < share}: the control that a rejection by ratios must beat. Set {@code share} to the
 * share that the rejection by ratios rejects.
 *
 * <p>The draw depends on the seed, the sequence's place in its batch and its behavior log-probs. It is the same at
 * assembly, at the step and in a replay. Unit: token or sequence, as set.
 *
 * <p>Source: our own, as a control.
 *
 * @param share share rejected on average, in (0, 1)
 * @param level unit of rejection
 * @param seed seed of the draws
 */
public record RandomRejection(double share, Level level, long seed) implements MaskStage {
    private static final long STEP = 0x9E3779B97F4A7C15L;

    /** Unit of rejection. */
    public enum Level {
        TOKEN,
        SEQUENCE
    }

    public RandomRejection {
        Objects.requireNonNull(level, "level");
        if (!(share > 0 && share < 1)) {
            throw new IllegalArgumentException("share must be in (0, 1): " + share);
        }
    }

    public static RandomRejection defaults() {
        return new RandomRejection(0.1, Level.SEQUENCE, 0);
    }

    @Override
    public CorrectionUnit unit() {
        return level == Level.TOKEN ? CorrectionUnit.TOKEN : CorrectionUnit.SEQUENCE;
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.BEHAVIOR);
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch own = batch.facts().tokens();
        float[] behavior = batch.facts().vector(StageInput.BEHAVIOR);
        byte[] keep = batch.left().mask();
        for (int s = 0; s < own.sequenceCount(); s++) {
            long state = mixed(seed + STEP * s); // identical answers must not be rejected together
            for (int t = own.start(s); t < own.end(s); t++) {
                state = own.isTrained(t) ? mixed(state + STEP + Float.floatToIntBits(behavior[t])) : state;
            }
            if (level == Level.SEQUENCE) {
                if (falls(mixed(state + STEP))) {
                    Arrays.fill(keep, own.start(s), own.end(s), (byte) 0);
                }
                continue;
            }
            for (int t = own.start(s); t < own.end(s); t++) {
                state += STEP;
                keep[t] &= (byte) (falls(mixed(state)) ? 0 : 1);
            }
        }
        return batch.mask(this, keep, StageSettings.of(this));
    }

    private boolean falls(long bits) {
        return (bits >>> 11) * 0x1p-53 < share;
    }

    /** SplitMix64's finaliser. */
    private static long mixed(long z) {
        long x = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
        return x ^ (x >>> 31);
    }
}
