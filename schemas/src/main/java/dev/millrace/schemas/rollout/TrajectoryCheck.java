package dev.millrace.schemas.rollout;

import dev.millrace.schemas.Trajectory;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** Whether the tokens and numbers of a trajectory can be trained on: topology and learner hold it to the same. */
public final class TrajectoryCheck {
    private TrajectoryCheck() {}

    /**
     * Prompt and response hold tokens; mask, version spans and log-probs fit the response; log-probs are possible where the mask is 1; the
     * temperature is one that an engine can take. O(tokens).
     *
     * @param vocabularySize that token ids must be below; 0 if it is not known
     * @throws RefusedException naming the first field that does not hold
     */
    public static void require(Trajectory trajectory, int vocabularySize) throws RefusedException {
        requireTokens(trajectory.getPromptTokens(), vocabularySize, "prompt_tokens");
        int tokens = requireTokens(trajectory.getResponseTokens(), vocabularySize, "response_tokens");
        ByteBuffer mask = trajectory.getMask();
        VectorCheck.requireSame(mask.remaining(), tokens, "mask");
        VectorCheck.requireMask(mask);
        SpanCheck.requireVersionSpans(trajectory.getVersionSpans(), tokens, "version_spans");
        requireLogProbs(trajectory.getBehaviorLogProbs(), mask, tokens, "behavior_log_probs");
        requireLogProbs(trajectory.getOldLogProbs(), mask, tokens, "old_log_probs");
        requireLogProbs(trajectory.getProximalLogProbs(), mask, tokens, "proximal_log_probs");
        requireLogProbs(trajectory.getReferenceLogProbs(), mask, tokens, "reference_log_probs");
        requireLogProbs(trajectory.getTeacherLogProbs(), mask, tokens, "teacher_log_probs");
        VectorCheck.requireTemperature(trajectory.getTemperature(), "temperature");
    }

    private static int requireTokens(ByteBuffer ids, int vocabularySize, String field) throws RefusedException {
        int tokens = VectorCheck.elements(ids, field);
        if (tokens == 0) {
            throw new RefusedException(RefusalReason.LENGTHS, field, field + " must hold a token");
        }
        VectorCheck.requireTokenIds(ids, vocabularySize, field);
        return tokens;
    }

    private static void requireLogProbs(@Nullable ByteBuffer logProbs, ByteBuffer mask, int tokens, String field)
            throws RefusedException {
        if (logProbs != null) {
            VectorCheck.requireElements(logProbs, tokens, field);
            VectorCheck.requireLogProbs(logProbs, mask, field);
        }
    }
}
