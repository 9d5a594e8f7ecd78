package dev.millrace.learner.step;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.kl.AverageCentredPenalty;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.schemas.StageReport;
import dev.millrace.stages.StageReports;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * What a step trains on: what the stages decided at the version it starts from, or the batch's own decisions, and the log-probs in
 * force. Per packed token;
 * the arrays are shared and must not be written.
 *
 * @param decided by the algorithm's stages
 * @param old log-probs in force
 * @param proximal log-probs in force
 */
record StepDecision(Decision decided, float[] old, float[] proximal, List<StageReport> stages) {
    /** Masks whose sequences stay in the denominator: see the package of the trust region masks. */
    private static final Set<String> TRUST_REGIONS = Set.of("trust_region", "sampled_trust_region");

    /** The layout under the mask in force, with groups. */
    TokenBatch left() {
        return decided.left();
    }

    /** The same with the advantages of another decision, and its report of them. */
    StepDecision withAdvantages(Decision others) {
        List<StageReport> reports = new ArrayList<>(stages);
        for (StageReport report : StageReports.of(others.outcomes())) {
            reports.replaceAll(before -> before.getStage().equals(report.getStage()) ? report : before);
        }
        return new StepDecision(
                new Decision(
                        decided.left(),
                        others.rewards(),
                        others.advantages(),
                        others.tokenAdvantages(),
                        decided.returns(),
                        decided.weights(),
                        decided.maskedBy(),
                        decided.outcomes(),
                        decided.essRatio(),
                        decided.essRatioTruncated(),
                        decided.secondMoment(),
                        decided.stepScale()),
                old,
                proximal,
                List.copyOf(reports));
    }

    /** The same with a penalty in the advantages of what is trained on, and its report. */
    StepDecision penalised(AverageCentredPenalty penalty, float[] behavior, float[] reference) {
        StageFacts facts = StageFacts.of(left(), decided.rewards())
                .vector(StageInput.BEHAVIOR, behavior)
                .vector(StageInput.REFERENCE, reference)
                .build();
        Decision moved = StageBatch.decide(facts, List.of(new Decided(decided.perToken()), penalty));
        List<StageReport> reports = new ArrayList<>(stages);
        reports.addAll(StageReports.of(moved.outcomes().subList(1, 2)));
        return new StepDecision(decided, old, proximal, List.copyOf(reports)).withAdvantages(moved);
    }

    /** The advantages that a penalty finds. */
    private record Decided(float[] perToken) implements AdvantageEstimator {
        @Override
        public CorrectionUnit unit() {
            return CorrectionUnit.TOKEN;
        }

        @Override
        public StageOutcome apply(StageBatch batch) {
            return batch.tokenAdvantage(this, perToken, Map.of());
        }
    }

    /** Indices of the members with a trained token, in order. */
    int[] trained() {
        return IntStream.range(0, left().sequenceCount())
                .filter(s -> left().trainedTokens(s) > 0)
                .toArray();
    }

    /**
     * What the loss of some of the trained members is divided by: their own tokens and sequences, or, after a trust region
     * mask, their share of those that reached it.
     */
    GlobalBatch whole(TokenBatch part) {
        return stages.stream()
                .filter(stage -> TRUST_REGIONS.contains(stage.getStage()))
                .findFirst()
                .map(mask -> new GlobalBatch(
                        (double) mask.getTokensSeen() * part.trainedTokens() / left().trainedTokens(),
                        (double) mask.getSequencesSeen() * part.sequenceCount() / trained().length,
                        1))
                .orElseGet(() -> new GlobalBatch(part.trainedTokens(), part.sequenceCount(), 1));
    }

    /** Trained tokens before the second-moment mask; where there is none, after all masks. */
    long tokensBeforeMomentMask() {
        return stages.stream()
                .filter(stage -> stage.getStage().equals("m2po"))
                .mapToLong(StageReport::getTokensSeen)
                .findFirst()
                .orElse(left().trainedTokens());
    }
}
