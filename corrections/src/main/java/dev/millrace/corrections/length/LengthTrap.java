package dev.millrace.corrections.length;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import java.util.Map;
import java.util.TreeMap;

/**
 * Reports whether what the stages before it rejected was rejected for being long: Spearman's
 * {@code z = corr(length, rejected) · √(n − 1)}, see {@link LengthTrapReport}; masks nothing.
 *
 * <p>Unit: batch. Source: our own.
 */
public record LengthTrap() implements MaskStage {

    public static LengthTrap defaults() {
        return new LengthTrap();
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.BATCH;
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        LengthTrapReport report =
                LengthTrapReport.of(batch.facts().tokens(), batch.left().mask());
        Map<String, Double> values = new TreeMap<>();
        values.put("sequences", (double) report.sequences());
        values.put("rejected", (double) report.rejected());
        values.put("rank_correlation", report.rankCorrelation());
        values.put("z_score", report.zScore());
        values.put("is_trap", report.isTrap() ? 1.0 : 0.0);
        for (LengthTrapReport.Bucket bucket : report.buckets()) {
            values.put("rejection_rate_from_" + bucket.fromTokens(), bucket.rejectionRate());
        }
        return batch.observed(this, values);
    }
}
