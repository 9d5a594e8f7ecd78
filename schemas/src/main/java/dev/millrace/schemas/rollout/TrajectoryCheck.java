package dev.millrace.schemas.rollout;

import dev.millrace.schemas.Trajectory;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** Checks that a trajectory can be trained on; shared by topology and learner. */
public final class TrajectoryCheck {
    private TrajectoryCheck() {}

    /**
     * Prompt and response must not be empty; mask, version spans and log-probs must fit the response; log-probs must be
     * possible where the mask is 1; an engine must support the temperature. O(tokens).
     *
     * @param vocabularySize exclusive bound of token ids; 0 if unknown
     * @throws RefusedException naming the first invalid field
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
