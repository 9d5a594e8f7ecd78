package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.staleness.StalenessLimit;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.StageReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a step that trusts the batch's own masks still masks: tokens that are staler than the limit at the version from which
 * it starts. An assembler that counts the batches ahead leaves none.
 *
 * @param left the layout under the batch's masks, less these tokens
 * @param report of the stage; null if there were none, and the batch's own reports stand as they are
 * @param maskedBy one per member: the stage that masked the last of its tokens, or null; null as a whole if there were none
 */
record LateStaleness(
        TokenBatch left,
        @Nullable StageReport report,
        @Nullable String @Nullable [] maskedBy) {
    /** Name of the stage in reports. */
    static final String STAGE = "staleness_at_step";

    static LateStaleness of(StepMembers members, long maxVersions, long version) {
        TokenBatch recorded = members.own().withMask(members.recordedMask());
        byte[] mask = new byte[recorded.tokenCount()];
        new StalenessLimit(maxVersions).maskTokens(members.versions(), version, mask);
        long masked = 0;
        for (int t = 0; t < mask.length; t++) {
            masked += mask[t] == 0 && recorded.isTrained(t) ? 1 : 0;
            mask[t] = mask[t] == 1 && recorded.isTrained(t) ? (byte) 1 : 0;
        }
        if (masked == 0) {
            return new LateStaleness(recorded, null, null);
        }
        TokenBatch left = recorded.withMask(mask);
        String[] maskedBy = new String[members.count()];
        long seen = 0;
        long lost = 0;
        for (int s = 0; s < maskedBy.length; s++) {
            BatchEntry entry = members.batch().members().get(s).entry();
            boolean wasTrained = recorded.trainedTokens(s) > 0;
            seen += wasTrained ? 1 : 0;
            if (left.trainedTokens(s) == 0) {
                maskedBy[s] = wasTrained ? STAGE : entry.getMaskedBy();
                lost += wasTrained ? 1 : 0;
            }
        }
        return new LateStaleness(
                left,
                new StageReport(
                        STAGE,
                        (long) recorded.trainedTokens(),
                        masked,
                        seen,
                        lost,
                        Map.of("max_versions", (double) maxVersions, "current_version", (double) version)),
                maskedBy);
    }

    /** The batch's reports, and this one behind them. */
    List<StageReport> stages(List<StageReport> recorded) {
        if (report == null) {
            return recorded;
        }
        List<StageReport> all = new ArrayList<>(recorded);
        all.add(report);
        return all;
    }
}
