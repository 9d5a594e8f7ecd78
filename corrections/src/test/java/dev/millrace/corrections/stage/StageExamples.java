package dev.millrace.corrections.stage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.staleness.BatchVersions;
import java.util.Arrays;
import java.util.List;

/** Two groups of two sequences of two tokens; each test sets the log ratios of proximal to behavior. */
public final class StageExamples {
    public static final double[] REWARDS = {1, 0, 1, 0};
    private static final TokenBatch TOKENS =
            new TokenBatch(new int[] {0, 2, 4, 6, 8}, new byte[] {1, 1, 1, 1, 1, 1, 1, 1}, new int[] {0, 0, 1, 1});

    private StageExamples() {}

    /** Versions 3, 4, 5, 5 against 7; ages 1, 2, 3, 4 s; old is behavior. */
    public static StageFacts.Builder facts(double... logRatios) {
        float[] behavior = new float[8];
        Arrays.fill(behavior, -1f);
        float[] proximal = new float[8];
        for (int t = 0; t < 8; t++) {
            proximal[t] = (float) (-1 + (logRatios.length == 0 ? 0 : logRatios[t]));
        }
        return StageFacts.of(TOKENS, REWARDS)
                .vector(StageInput.BEHAVIOR, behavior)
                .vector(StageInput.OLD, behavior)
                .vector(StageInput.PROXIMAL, proximal)
                .versions(7, BatchVersions.wholeSequences(TOKENS, new long[] {3, 4, 5, 5}))
                .agesMs(new long[] {1000, 2000, 3000, 4000});
    }

    /** The same, nothing of it trained. */
    public static StageFacts starved() {
        TokenBatch none = TOKENS.withMask(new byte[8]);
        StageFacts facts = facts().build();
        return StageFacts.of(none, REWARDS)
                .vector(StageInput.BEHAVIOR, facts.vector(StageInput.BEHAVIOR))
                .vector(StageInput.OLD, facts.vector(StageInput.OLD))
                .vector(StageInput.PROXIMAL, facts.vector(StageInput.PROXIMAL))
                .versions(7, BatchVersions.wholeSequences(none, new long[] {3, 4, 5, 5}))
                .agesMs(new long[] {1000, 2000, 3000, 4000})
                .build();
    }

    /** What the stages decide. */
    public static Decision decide(StageFacts.Builder facts, Stage... stages) {
        return StageBatch.decide(facts.build(), List.of(stages));
    }

    /** The outcome of the last stage. */
    public static StageOutcome last(Decision decision) {
        return decision.outcomes().get(decision.outcomes().size() - 1);
    }
}
