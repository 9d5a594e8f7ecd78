package dev.millrace.stages;

import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.packed.PackedFloats;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The log-probs of one trajectory, or of a batch of them, one per packed token; not to be written to.
 *
 * @param behavior by the generator's engine at the version that sampled
 * @param old by the learner's engine at that version; NaN where they are missing
 * @param proximal by the learner's engine at the newest version
 */
public record MemberLogProbs(float[] behavior, float[] old, float[] proximal) {

    /** A recorded vector unpacked; NaN for each of its tokens where there is none. */
    public static float[] known(@Nullable ByteBuffer recorded, int tokens) {
        if (recorded != null) {
            return PackedFloats.toArray(recorded);
        }
        float[] missing = new float[tokens];
        Arrays.fill(missing, Float.NaN);
        return missing;
    }

    public StageFacts.Builder addTo(StageFacts.Builder facts) {
        return facts.vector(StageInput.BEHAVIOR, behavior)
                .vector(StageInput.OLD, old)
                .vector(StageInput.PROXIMAL, proximal);
    }
}
