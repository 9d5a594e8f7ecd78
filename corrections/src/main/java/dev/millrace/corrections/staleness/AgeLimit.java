package dev.millrace.corrections.staleness;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;

/**
 * Hard limit on age: sequences that were finished more than {@code maxAgeMs} before the batch was complete are not trained on,
 * however few versions have passed since.
 *
 * <p>Unit: sequence. Immutable and thread-safe.
 *
 * @param maxAgeMs largest admitted age, in milliseconds, at least 1
 */
public record AgeLimit(long maxAgeMs) implements MaskStage {
    public AgeLimit {
        if (maxAgeMs < 1) {
            throw new IllegalArgumentException(
                    "max_age_ms must be at least 1; without a limit the stage is left out: " + maxAgeMs);
        }
    }

    @Override
    public String name() {
        return "age";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.AGES);
    }

    @Override
    public StageOutcome apply(StageBatch batch) {
        byte[] keep = batch.left().mask();
        long[] ages = batch.facts().agesMs();
        long oldest = 0;
        for (int s = 0; s < ages.length; s++) {
            oldest = Math.max(oldest, ages[s]);
            if (ages[s] > maxAgeMs) {
                Arrays.fill(keep, batch.left().start(s), batch.left().end(s), (byte) 0);
            }
        }
        Map<String, Double> values = StageSettings.of(this);
        values.put("oldest_ms", (double) oldest);
        return batch.mask(this, keep, values);
    }
}
