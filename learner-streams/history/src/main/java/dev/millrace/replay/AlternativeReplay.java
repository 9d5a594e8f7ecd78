package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.replay.DecidedFigures.Advantages;
import dev.millrace.replay.DecidedFigures.StepSize;
import dev.millrace.replay.DecidedFigures.TokenFigures;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.stages.DecidedBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

final class AlternativeReplay {
    private final Alternative alternative;
    private final Optional<RebuiltMemory> memory;

    AlternativeReplay(Alternative alternative, Alternative ofRun) {
        this.alternative = alternative;
        this.memory = RebuiltMemory.of(alternative.algorithm(), ofRun.algorithm(), !alternative.isRewarded());
    }

    /** Returns whether a decision depends on earlier batches, so that batches must come in order. */
    boolean isInOrder() {
        return memory.isPresent();
    }

    /** Returns its view of a batch; called once per batch, and in order if {@link #isInOrder}. */
    StageFacts seen(LearnerBatch batch, StageFacts facts) {
        return memory.map(rebuilt -> rebuilt.next(batch, facts)).orElse(facts);
    }

    String name() {
        return alternative.name();
    }

    boolean isRescored() {
        return alternative.isRescored();
    }

    boolean isRewarded() {
        return alternative.isRewarded();
    }

    /** True for the same algorithm over the same log-probs. */
    boolean decidesAs(AlternativeReplay other) {
        return alternative.algorithm().equals(other.alternative.algorithm()) && isRescored() == other.isRescored();
    }

    Decision decide(StageFacts facts) {
        return alternative.algorithm().decide(facts);
    }

    /** True if the decision equals the batch's. */
    static boolean isRecorded(Decision decision, LearnerBatch batch) {
        if (decision.left().trainedTokens() != batch.getTrainedTokens()
                || !isSame(decision.essRatio(), batch.getEssRatio())
                || decision.stepScale() != batch.getStepScale()
                || !isSame(decision.secondMoment(), batch.getSecondMoment())) {
            return false;
        }
        for (int s = 0; s < batch.getEntries().size(); s++) {
            BatchEntry entry = batch.getEntries().get(s);
            if (entry.getTrainedTokens() != decision.left().trainedTokens(s)
                    || entry.getAdvantage() != decision.advantages()[s]) {
                return false;
            }
        }
        return true;
    }

    /** True if the decision equals the learner's log, as far as the step logged any. */
    static boolean isTrained(Decision decision, TrainingStep step) {
        Map<String, Double> metrics = step.getMetrics();
        if (decision.left().trainedTokens() != step.getTokensTrained()
                || !isSame(decision.essRatio(), step.getEssRatio())
                || decision.stepScale() != metrics.getOrDefault("step_scale", decision.stepScale())
                || !isSame(decision.secondMoment(), step.getSecondMoment())) {
            return false;
        }
        for (int s = 0; step.getEntries() != null && s < step.getEntries().size(); s++) {
            if (step.getEntries().get(s).getTrainedTokens() != decision.left().trainedTokens(s)
                    || !Objects.equals(step.getEntries().get(s).getMaskedBy(), decision.maskedBy()[s])) {
                return false;
            }
        }
        return true;
    }

    DecidedFigures figures(StageFacts facts, Decision decision, LearnerBatch batch) {
        TokenBatch left = decision.left();
        Counted counted = new Counted(facts, decision);
        long changed = 0;
        double absolute = 0;
        for (int s = 0; s < left.sequenceCount(); s++) {
            absolute += Math.abs(decision.advantages()[s]);
            changed += decision.advantages()[s] != batch.getEntries().get(s).getAdvantage() ? 1 : 0;
        }
        TokenFigures tokens = tokenFigures(facts, decision);
        return new DecidedFigures(
                new MaskedShare(facts.tokens().trainedTokens(), facts.tokens().trainedTokens() - left.trainedTokens()),
                counted.sequences,
                counted.breakdown(),
                tokens.kept(),
                tokens.counting(),
                new StepSize(
                        decision.essRatio().orElse(Double.NaN),
                        decision.essRatioTruncated().orElse(Double.NaN),
                        decision.stepScale(),
                        decision.secondMoment().orElse(Double.NaN)),
                new Advantages(absolute / Math.max(1, left.sequenceCount()), changed));
    }

    private TokenFigures tokenFigures(StageFacts facts, Decision decision) {
        long changed = decision.outcomes().stream()
                .filter(outcome ->
                        outcome.stage().equals(alternative.algorithm().weights().name()))
                .mapToLong(StageOutcome::tokensActed)
                .sum();
        return TokenFigures.of(
                decision.left(), facts.ratio(RatioKind.ANCHOR), decision.weights(), decision.perToken(), changed);
    }

    private static boolean isSame(OptionalDouble decided, @Nullable Double recorded) {
        return recorded == null
                ? decided.isEmpty()
                : decided.isPresent() && decided.getAsDouble() == recorded.doubleValue();
    }

    /**
     * The batch under this alternative.
     *
     * @param trajectories the run's, one per entry
     * @param proximalVersions version of the proximal log-probs seen, per entry
     * @param recordWeights store the alternative's weights in its entries
     */
    KeptBatch kept(
            LearnerBatch recorded,
            List<Trajectory> trajectories,
            long[] proximalVersions,
            StageFacts facts,
            Decision decision,
            boolean recordWeights) {
        List<Trajectory> seen = new ArrayList<>();
        for (int s = 0; s < trajectories.size(); s++) {
            seen.add(seen(trajectories.get(s), proximalVersions[s], s, facts));
        }
        return new KeptBatch(
                DecidedBatch.of(
                        DecidedBatch.Assembly.of(recorded),
                        recorded.getEntries(),
                        recorded.getStages().subList(0, 1),
                        facts,
                        decision,
                        recordWeights),
                seen);
    }

    /** A trajectory with the log-probs seen by this alternative. */
    private static Trajectory seen(Trajectory recorded, long proximalVersion, int sequence, StageFacts facts) {
        int from = facts.tokens().start(sequence);
        int to = facts.tokens().end(sequence);
        return Trajectory.newBuilder(recorded)
                .setOldLogProbs(
                        facts.withoutOld()[sequence]
                                ? null
                                : PackedFloats.of(Arrays.copyOfRange(facts.vector(StageInput.OLD), from, to)))
                .setProximalLogProbs(PackedFloats.of(Arrays.copyOfRange(facts.vector(StageInput.PROXIMAL), from, to)))
                .setProximalVersion(proximalVersion)
                .setProximalValues(
                        recorded.getProximalValues() != null && facts.has(StageInput.VALUES)
                                ? PackedFloats.of(Arrays.copyOfRange(facts.vector(StageInput.VALUES), from, to))
                                : recorded.getProximalValues())
                .build();
    }

    private static final class Counted {
        private final SortedMap<Long, MaskedShare> byLag = new TreeMap<>();
        private final SortedMap<Long, MaskedShare> byLength = new TreeMap<>();
        private final SortedMap<Long, MaskedShare> bySign = new TreeMap<>();
        private MaskedShare sequences = MaskedShare.NONE;

        Counted(StageFacts facts, Decision decision) {
            TokenBatch own = facts.tokens();
            for (int s = 0; s < own.sequenceCount(); s++) {
                if (own.trainedTokens(s) == 0) {
                    continue;
                }
                MaskedShare one = new MaskedShare(1, decision.left().trainedTokens(s) == 0 ? 1 : 0);
                sequences = sequences.plus(one);
                byLength.merge(MaskBreakdown.classOf(own.end(s) - own.start(s)), one, MaskedShare::plus);
                bySign.merge((long) Math.signum(decision.advantages()[s]), one, MaskedShare::plus);
                List<VersionSpan> spans = facts.versions().spans(s);
                for (VersionSpan span : spans) {
                    boolean isWhole = spans.size() == 1; // then nothing has to be counted
                    int of = isWhole ? own.trainedTokens(s) : 0;
                    int left = isWhole ? decision.left().trainedTokens(s) : 0;
                    for (int t = own.start(s) + span.start(); !isWhole && t < own.start(s) + span.end(); t++) {
                        of += own.trained(t);
                        left += decision.left().trained(t); // of the trainable
                    }
                    byLag.merge(
                            MaskBreakdown.classOf(facts.version() - span.version()),
                            new MaskedShare(of, of - left),
                            MaskedShare::plus);
                }
            }
        }

        MaskBreakdown breakdown() {
            return new MaskBreakdown(byLag, byLength, bySign);
        }
    }
}
