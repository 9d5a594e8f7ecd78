package dev.millrace.corrections.filter;

import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.RatioMask;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;

/**
 * IPO's mask: a token is dropped if the policies' probabilities of it differ by more than {@code epsilon},
 * {@code |pi(y) - mu(y)| > epsilon}, regardless of the sign of its advantage.
 *
 * <p>The mask compares probabilities, not their logs. It keeps a token that was unlikely and is now a hundred times
 * more unlikely, since that changes little, and drops one whose probability fell from 0.9 to 0.5. The difference is the
 * part of the total variation that one token can show. IPO's penalty on the squared log ratio of kept tokens belongs to
 * an objective.
 *
 * <p>Unit: token. Source: prime-rl pull requests 3418 and 3586.
 *
 * @param epsilon largest difference, in (0, 1)
 */
public record ProbabilityDifferenceMask(double epsilon) implements RatioMask {
    public ProbabilityDifferenceMask {
        if (!(epsilon > 0 && epsilon < 1)) {
            throw new IllegalArgumentException("epsilon must be in (0, 1): " + epsilon);
        }
    }

    /** That of the source, 0.3. */
    public static ProbabilityDifferenceMask defaults() {
        return new ProbabilityDifferenceMask(0.3);
    }

    @Override
    public String name() {
        return "ipo";
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        LogRatio ratio = batch.facts().ratio(RatioKind.ANCHOR);
        byte[] keep =
                TokenCondition.mask(batch.left(), ratio, (pi, mu) -> Math.abs(Math.exp(pi) - Math.exp(mu)) <= epsilon);
        return batch.mask(this, keep, StageSettings.of(this));
    }
}
