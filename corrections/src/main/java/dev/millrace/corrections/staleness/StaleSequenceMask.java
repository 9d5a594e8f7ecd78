package dev.millrace.corrections.staleness;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;
import java.util.Set;

/**
 * Rejects whole sequences with a trained token of {@code version − version_t > maxVersions}: where the run's limit keeps the
 * fresh tail of a sequence that a weight swap divided, this keeps credit within one answer whole.
 *
 * <p>Unit: sequence, see {@link StalenessLimit}. Source: our own.
 *
 * @param maxVersions largest staleness of a token, at least 0
 */
public record StaleSequenceMask(long maxVersions) implements MaskStage {
    public StaleSequenceMask {
        new StalenessLimit(maxVersions);
    }

    public static StaleSequenceMask defaults() {
        return new StaleSequenceMask(4);
    }

    @Override
    public String name() {
        return "stale_sequences";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.VERSIONS);
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        byte[] keep = new byte[batch.left().tokenCount()];
        StalenessSummary summary = new StalenessLimit(maxVersions)
                .rejectSequences(batch.facts().versions(), batch.facts().version(), keep);
        Map<String, Double> values = StageSettings.of(this);
        values.put("oldest", (double) summary.oldest());
        return batch.mask(this, keep, values);
    }
}
