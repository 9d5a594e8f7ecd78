package dev.millrace.corrections.filter;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;

/**
 * Drops groups without a training signal: those of {@code max_group |A| <= tolerance}.
 *
 * <p>They have no policy gradient, but they count in every denominator, and a divergence in the loss pulls on them; without
 * them a step is as large as its useful part. What it costs is that steps grow where prompts are all solved, or none is.
 *
 * <p>Unit: group. Source: the filter of DAPO (arXiv 2503.14476), which samples anew in their place; here nothing is.
 *
 * @param tolerance largest advantage treated as 0; finite, at least 0
 */
public record ZeroAdvantageMask(double tolerance) implements MaskStage {
    public ZeroAdvantageMask {
        if (!(tolerance >= 0 && tolerance < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("tolerance must be finite and at least 0: " + tolerance);
        }
    }

    public static ZeroAdvantageMask defaults() {
        return new ZeroAdvantageMask(0);
    }

    @Override
    public String name() {
        return "zero_advantage";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.GROUP;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        double[] advantages = batch.largestAdvantages();
        boolean[] teaches = new boolean[left.groupCount()];
        for (int s = 0; s < advantages.length; s++) {
            teaches[left.group(s)] |= advantages[s] > tolerance;
        }
        byte[] keep = left.mask();
        boolean[] dropped = new boolean[teaches.length];
        for (int s = 0; s < advantages.length; s++) {
            if (!teaches[left.group(s)]) {
                dropped[left.group(s)] |= left.trainedTokens(s) > 0;
                Arrays.fill(keep, left.start(s), left.end(s), (byte) 0);
            }
        }
        double groups = 0;
        for (boolean one : dropped) {
            groups += one ? 1 : 0;
        }
        Map<String, Double> values = StageSettings.of(this);
        values.put("groups_dropped", groups);
        return batch.mask(this, keep, values);
    }
}
