package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.schemas.StageReport;
import java.util.List;

/**
 * What the corrections decided about a batch.
 *
 * @param tokens the layout under the mask that is left
 * @param advantages one per sequence
 * @param maskedBy one per sequence: the stage that masked the last of its tokens; null where some are trained on
 * @param reports one per stage, in order
 * @param essRatio of the raw sequence weights; NaN where no token is left
 * @param essRatioTruncated of the truncated ones
 * @param secondMoment before the second-moment mask; NaN where there is no token
 * @param stepScale factor on the learning rate
 * @param stalenessMean in versions, over trained tokens before masking
 * @param stalenessMax the largest
 */
public record BatchVerdict(
        TokenBatch tokens,
        double[] advantages,
        String[] maskedBy,
        List<StageReport> reports,
        double essRatio,
        double essRatioTruncated,
        double secondMoment,
        double stepScale,
        double stalenessMean,
        long stalenessMax) {}
