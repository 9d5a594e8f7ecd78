package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.schemas.StageReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The mask of one batch on its way through the stages: what is left, who took what, and the reports. */
final class MaskLedger {
    private final List<StageReport> reports = new ArrayList<>();
    private final String[] maskedBy;
    private TokenBatch left;

    /** @param ownMask name for sequences that come with nothing to train on */
    MaskLedger(TokenBatch tokens, String ownMask) {
        left = tokens;
        maskedBy = new String[tokens.sequenceCount()];
        note(ownMask);
    }

    /** The batch under the mask so far. */
    TokenBatch left() {
        return left;
    }

    /** A stage that masks has left this much, and reports. */
    void masked(String stage, byte[] mask, Map<String, Double> values) {
        TokenBatch before = left;
        left = before.withMask(mask);
        long changed = 0;
        for (int s = 0; s < before.sequenceCount(); s++) {
            changed += before.trainedTokens(s) != left.trainedTokens(s) ? 1 : 0;
        }
        reports.add(new StageReport(
                stage,
                (long) before.trainedTokens(),
                (long) before.trainedTokens() - left.trainedTokens(),
                sequences(before),
                changed,
                values));
        note(stage);
    }

    /** A stage that masks nothing reports. */
    void observed(String stage, Map<String, Double> values) {
        reports.add(new StageReport(stage, (long) left.trainedTokens(), 0L, sequences(left), 0L, values));
    }

    /** A stage that has counted for itself reports. */
    void reported(StageReport report) {
        reports.add(report);
    }

    List<StageReport> reports() {
        return List.copyOf(reports);
    }

    String[] maskedBy() {
        return maskedBy.clone();
    }

    private void note(String stage) {
        for (int s = 0; s < maskedBy.length; s++) {
            if (maskedBy[s] == null && left.trainedTokens(s) == 0) {
                maskedBy[s] = stage;
            }
        }
    }

    private static long sequences(TokenBatch batch) {
        long trained = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            trained += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        return trained;
    }
}
