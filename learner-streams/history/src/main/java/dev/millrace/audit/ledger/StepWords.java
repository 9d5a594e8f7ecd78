package dev.millrace.audit.ledger;

import dev.millrace.schemas.StepEntry;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What became of each entry of a batch by its step, in one byte an entry.
 *
 * @param codes 0 for an entry that was trained on, else one more than the place of its stage in {@code stages}
 * @param stages that masked the last token of one; empty for an entry that had none to begin with
 */
record StepWords(byte[] codes, List<String> stages) {
    private static final int MOST_STAGES = 126;
    private static final String OTHER = "other";

    static StepWords of(List<StepEntry> entries) {
        byte[] codes = new byte[entries.size()];
        List<String> stages = new ArrayList<>();
        for (int i = 0; i < codes.length; i++) {
            if (entries.get(i).getTrainedTokens() == 0) {
                String stage = entries.get(i).getMaskedBy() == null
                        ? ""
                        : entries.get(i).getMaskedBy();
                String named = stages.contains(stage) || stages.size() < MOST_STAGES ? stage : OTHER;
                if (!stages.contains(named)) {
                    stages.add(named);
                }
                codes[i] = (byte) (1 + stages.indexOf(named));
            }
        }
        return new StepWords(codes, List.copyOf(stages));
    }

    int size() {
        return codes.length;
    }

    /** The stage that masked the last of an entry's tokens, empty if it had none; null if it was trained on. */
    @Nullable
    String maskedBy(int entry) {
        return codes[entry] == 0 ? null : stages.get(codes[entry] - 1);
    }
}
