package dev.millrace.corrections.stage;

import dev.millrace.corrections.ratio.RatioKind;
import java.util.Set;

/** A mask by how far proximal is from behavior. */
public interface RatioMask extends MaskStage {

    @Override
    default Set<StageInput> inputs() {
        return StageFacts.policies(RatioKind.ANCHOR);
    }
}
