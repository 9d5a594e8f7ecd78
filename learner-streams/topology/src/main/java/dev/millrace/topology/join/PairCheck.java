package dev.millrace.topology.join;

import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.CreditCheck;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.topology.ingress.PartnerArrival;
import dev.millrace.topology.ingress.RewardArrival;
import dev.millrace.topology.ingress.ScoreArrival;
import java.util.List;

/** Whether a partner fits the rollout it names; both hold what they claim on their own. Pure. */
final class PairCheck {
    private PairCheck() {}

    /** @throws RefusedException of the partner, naming what does not fit */
    static void requireFit(Rollout rollout, PartnerArrival partner) throws RefusedException {
        if (partner instanceof ScoreArrival score) {
            requireFit(rollout, score.score());
        } else if (partner instanceof RewardArrival reward) {
            requireFit(rollout, reward.reward());
        }
    }

    /** Its credit must be of the rollout's turns and tokens; a reward without is of any rollout. */
    private static void requireFit(Rollout rollout, Reward reward) throws RefusedException {
        try {
            CreditCheck.require(
                    reward.getCredit(),
                    rollout.getTurns().size(),
                    rollout.getMask().remaining(),
                    Double.MAX_VALUE);
        } catch (RefusedException e) {
            throw new RefusedException(new Refusal(
                    RefusalReason.MISFIT,
                    e.refusal().field(),
                    e.refusal().message(),
                    reward.getRunId(),
                    reward.getEpoch(),
                    reward.getRolloutId()));
        }
    }

    private static void requireFit(Rollout rollout, Score score) throws RefusedException {
        int tokens = rollout.getMask().remaining();
        for (LogProbVector vector : score.getVectors()) {
            int scored = vector.getLogProbs().remaining() / Float.BYTES;
            if (scored != tokens) {
                throw mismatch(
                        score,
                        "vectors." + vector.getPolicy(),
                        "the rollout has " + tokens + " response tokens, the score " + scored);
            }
            if (vector.getTopLogProbs() != null) {
                int rows = vector.getTopLogProbs().getRemainderLogProbs().remaining() / Float.BYTES;
                if (rows != PackedMask.count(rollout.getMask())) {
                    throw mismatch(
                            score,
                            "vectors." + vector.getPolicy() + ".top_log_probs",
                            "the rollout has " + PackedMask.count(rollout.getMask()) + " tokens to be trained on, the"
                                    + " score top log-probs of " + rows);
                }
            }
            if (vector.getTopLogProbs() != null) {
                requireSameTokens(rollout, vector.getTopLogProbs(), score, vector.getPolicy());
            }
            if (vector.getPolicy() == PolicyRole.OLD) {
                requireSameVersions(rollout.getVersionSpans(), vector.getVersionSpans(), tokens, score);
            }
        }
    }

    /** Distributions are compared entry by entry. */
    private static void requireSameTokens(Rollout rollout, TopLogProbs scored, Score score, PolicyRole policy)
            throws RefusedException {
        TopLogProbs named = rollout.getSamplingTrace() == null
                ? null
                : rollout.getSamplingTrace().getTopLogProbs();
        if (named != null
                && (named.getK() != scored.getK() || !named.getTokenIds().equals(scored.getTokenIds()))) {
            throw mismatch(
                    score,
                    "vectors." + policy + ".top_log_probs.token_ids",
                    "the score has log-probs of other tokens than the " + named.getK()
                            + " at each position that the rollout names");
        }
    }

    private static void requireSameVersions(
            List<VersionSpan> sampled, List<VersionSpan> scored, int tokens, Score score) throws RefusedException {
        int i = 0;
        int j = 0;
        for (int t = 0;
                t < tokens;
                t = Math.min(sampled.get(i).getEnd(), scored.get(j).getEnd())) {
            while (sampled.get(i).getEnd() <= t) {
                i++;
            }
            while (scored.get(j).getEnd() <= t) {
                j++;
            }
            if (sampled.get(i).getVersion() != scored.get(j).getVersion()) {
                throw mismatch(
                        score,
                        "vectors.OLD.version_spans",
                        "token " + t + " was sampled by version "
                                + sampled.get(i).getVersion() + " and scored under version "
                                + scored.get(j).getVersion());
            }
        }
    }

    private static RefusedException mismatch(Score score, String field, String sentence) {
        return new RefusedException(new Refusal(
                RefusalReason.MISFIT, field, sentence, score.getRunId(), score.getEpoch(), score.getRolloutId()));
    }
}
