package dev.millrace.topology.ingress;

import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.rollout.OwnershipCheck;
import dev.millrace.schemas.rollout.PositionRows;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.schemas.rollout.SpanCheck;
import dev.millrace.schemas.rollout.VectorCheck;
import dev.millrace.schemas.run.RunIdentity;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Holds a score to everything it claims about itself; whether it fits its rollout is asked when they meet.
 *
 * <p>It must be of this run and epoch and lie under its group id; it must name a record of the rollouts topic in
 * its own partition; it holds one vector for each policy that its topic is for, unless it says why not, and none for
 * another; all are of one length, with spans that cover it. Every policy but the old one is one version throughout.
 *
 * <p>Pure, thread-safe, O(tokens), allocates nothing that grows with them.
 */
public final class ScoreCheck {
    private final OwnershipCheck ownership;
    private final String rolloutsTopic;
    private final IngressConfig config;
    private final Set<PolicyRole> policies;

    /** @param kind of the topic: a score, a reference score or a teacher score */
    public ScoreCheck(JoinSide kind, RunIdentity run, String rolloutsTopic, IngressConfig config) {
        this.policies = switch (kind) {
            case SCORE -> EnumSet.of(PolicyRole.OLD, PolicyRole.PROXIMAL);
            case REFERENCE -> EnumSet.of(PolicyRole.REFERENCE);
            case TEACHER -> EnumSet.of(PolicyRole.TEACHER);
            default -> throw new IllegalArgumentException("no score is a " + kind.noun());
        };
        this.ownership = new OwnershipCheck(run);
        this.rolloutsTopic = rolloutsTopic;
        this.config = config;
    }

    /**
     * @param score decoded
     * @param key the record's key as it came, may be null
     * @param partition of the scores topic it was read from
     * @return the scored rollout's name, taken apart
     * @throws RefusedException naming the first claim that does not hold
     */
    public SampleName check(Score score, byte @Nullable [] key, int partition) throws RefusedException {
        ownership.requireOurs(score.getRunId(), score.getEpoch());
        SampleName name = SampleName.of(score.getRolloutId(), score.getGroupId(), config.maxGroupSize());
        OwnershipCheck.requireKey(key, score.getGroupId(), "group_id");
        OwnershipCheck.requireRollout(score.getRolloutSource(), rolloutsTopic, partition);
        checkVectors(score.getVectors());
        if (score.getUnavailable() == null) {
            for (PolicyRole policy : policies) {
                requirePolicy(score, policy);
            }
        }
        return name;
    }

    private void checkVectors(List<LogProbVector> vectors) throws RefusedException {
        Set<PolicyRole> seen = EnumSet.noneOf(PolicyRole.class);
        int tokens = -1;
        for (int i = 0; i < vectors.size(); i++) {
            LogProbVector vector = vectors.get(i);
            String field = "vectors[" + i + "]";
            if (!policies.contains(vector.getPolicy())) {
                throw new RefusedException(
                        RefusalReason.VECTORS,
                        field,
                        "this topic holds log-probs of " + policies + ": " + vector.getPolicy());
            }
            if (!seen.add(vector.getPolicy())) {
                throw new RefusedException(
                        RefusalReason.VECTORS, field, "there is a second vector of " + vector.getPolicy());
            }
            int length = VectorCheck.elements(vector.getLogProbs(), field + ".log_probs");
            tokens = tokens < 0 ? length : tokens;
            VectorCheck.requireSame(length, tokens, field + ".log_probs");
            checkVector(vector, tokens, field);
        }
    }

    private static void checkVector(LogProbVector vector, int tokens, String field) throws RefusedException {
        if (tokens == 0) {
            throw new RefusedException(RefusalReason.LENGTHS, field + ".log_probs", "log_probs must hold a token");
        }
        VectorCheck.requireLogProbs(vector.getLogProbs(), field + ".log_probs");
        boolean ofTheRun = vector.getPolicy() == PolicyRole.OLD || vector.getPolicy() == PolicyRole.PROXIMAL;
        SpanCheck.requireVersionSpans(vector.getVersionSpans(), tokens, ofTheRun ? 0 : -1, field + ".version_spans");
        if (vector.getPolicy() != PolicyRole.OLD) {
            long version = vector.getVersionSpans().get(0).getVersion();
            for (int i = 1; i < vector.getVersionSpans().size(); i++) {
                if (vector.getVersionSpans().get(i).getVersion() != version) {
                    throw new RefusedException(
                            RefusalReason.VERSION_SPANS,
                            field + ".version_spans[" + i + "]",
                            "the " + vector.getPolicy() + " policy is one version: " + version + " and "
                                    + vector.getVersionSpans().get(i).getVersion());
                }
            }
        }
        if (vector.getEntropies() != null) {
            VectorCheck.requireElements(vector.getEntropies(), tokens, field + ".entropies");
            VectorCheck.requireMoments(vector.getEntropies(), Float.POSITIVE_INFINITY, field + ".entropies");
        }
        if (vector.getValues() != null) {
            VectorCheck.requireElements(vector.getValues(), tokens, field + ".values");
            VectorCheck.requireFinite(vector.getValues(), field + ".values");
        }
        if (vector.getTopLogProbs() != null) {
            PositionRows.requireTopLogProbs(vector.getTopLogProbs(), -1, 0, field + ".top_log_probs");
        }
        if (vector.getSumSquaredProbs() != null) {
            VectorCheck.requireElements(vector.getSumSquaredProbs(), tokens, field + ".sum_squared_probs");
            VectorCheck.requireMoments(vector.getSumSquaredProbs(), 1f, field + ".sum_squared_probs");
        }
    }

    private static void requirePolicy(Score score, PolicyRole policy) throws RefusedException {
        for (LogProbVector vector : score.getVectors()) {
            if (vector.getPolicy() == policy) {
                return;
            }
        }
        throw new RefusedException(
                RefusalReason.VECTORS,
                "vectors",
                "a score must hold the log-probs of " + policy + ", or give the reason in unavailable");
    }
}
