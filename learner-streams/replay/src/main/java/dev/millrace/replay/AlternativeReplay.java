package dev.millrace.replay;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.CorrectionInForce;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.BatchCorrections;
import dev.millrace.stages.BatchInput;
import dev.millrace.stages.BatchVerdict;
import dev.millrace.stages.ComparedPolicies;
import dev.millrace.stages.DecidedBatch;
import dev.millrace.stages.ImportanceWeighting;
import dev.millrace.stages.MemberLogProbs;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Decides about recorded batches by one alternative; the same classes that the topology decides by. Thread-safe. */
final class AlternativeReplay {
    private final Alternative alternative;
    private final BatchCorrections corrections;
    private final ImportanceWeighting weighting;

    AlternativeReplay(Alternative alternative) {
        this.alternative = alternative;
        this.corrections = new BatchCorrections(alternative.corrections());
        this.weighting = new ImportanceWeighting(alternative.corrections().rolloutCorrection());
    }

    /** Whether it sees log-probs that were computed again. */
    boolean isRescored() {
        return alternative.isRescored();
    }

    /** What a diagnosis has to know of it. */
    CorrectionInForce inForce() {
        boolean rejects = alternative.corrections().rolloutCorrection().rejects();
        if (!rejects) {
            return CorrectionInForce.NONE;
        }
        return alternative.corrections().rolloutCorrection().makesWeights()
                ? CorrectionInForce.REJECTION_AND_WEIGHTS
                : CorrectionInForce.REJECTION;
    }

    BatchVerdict decide(BatchInput input) {
        return corrections.decide(input);
    }

    /** NaN and null are the same: what was not computed. */
    private static boolean isSame(double decided, @Nullable Double recorded) {
        return recorded == null ? Double.isNaN(decided) : decided == recorded;
    }

    /** Whether a verdict is what the batch says. */
    static boolean isRecorded(BatchVerdict verdict, LearnerBatch batch) {
        if (verdict.tokens().trainedTokens() != batch.getTrainedTokens()
                || !isSame(verdict.essRatio(), batch.getEssRatio())
                || verdict.stepScale() != batch.getStepScale()
                || !isSame(verdict.secondMoment(), batch.getSecondMoment())) {
            return false;
        }
        for (int s = 0; s < batch.getEntries().size(); s++) {
            BatchEntry entry = batch.getEntries().get(s);
            if (entry.getTrainedTokens() != verdict.tokens().trainedTokens(s)
                    || entry.getAdvantage() != verdict.advantages()[s]) {
                return false;
            }
        }
        return true;
    }

    /** Whether a verdict is what the learner's log says of its step; a step that let the batch's own decisions stand says less. */
    static boolean isTrained(BatchVerdict verdict, TrainingStep step) {
        Map<String, Double> metrics = step.getMetrics();
        if (verdict.tokens().trainedTokens() != step.getTokensTrained()
                || !isSame(verdict.essRatio(), step.getEssRatio())
                || verdict.stepScale() != metrics.getOrDefault("step_scale", verdict.stepScale())
                || !isSame(verdict.secondMoment(), step.getSecondMoment())) {
            return false;
        }
        for (int s = 0; step.getEntries() != null && s < step.getEntries().size(); s++) {
            if (step.getEntries().get(s).getTrainedTokens() != verdict.tokens().trainedTokens(s)
                    || !Objects.equals(step.getEntries().get(s).getMaskedBy(), verdict.maskedBy()[s])) {
                return false;
            }
        }
        return true;
    }

    StepFigures figures(BatchInput input, BatchVerdict verdict, LearnerBatch batch) {
        TokenBatch left = verdict.tokens();
        KeptTokens tokens = keptTokens(input, left);
        Counted counted = new Counted(input, verdict);
        long changed = 0;
        double absolute = 0;
        for (int s = 0; s < left.sequenceCount(); s++) {
            absolute += Math.abs(verdict.advantages()[s]);
            changed += verdict.advantages()[s] != batch.getEntries().get(s).getAdvantage() ? 1 : 0;
        }
        return new StepFigures(
                new MaskedShare(input.tokens().trainedTokens(), input.tokens().trainedTokens() - left.trainedTokens()),
                counted.sequences,
                tokens.changedWeights(),
                tokens.meanWeight(),
                tokens.maxWeight(),
                verdict.essRatio(),
                verdict.essRatioTruncated(),
                verdict.stepScale(),
                verdict.secondMoment(),
                tokens.k1(),
                tokens.k3(),
                tokens.chiSquare(),
                absolute / Math.max(1, left.sequenceCount()),
                changed,
                counted.breakdown());
    }

    /** In one walk over the tokens where nothing is masked and the weights are of the ratio whose divergence is told. */
    private KeptTokens keptTokens(BatchInput input, TokenBatch left) {
        LogRatio anchor = input.logProbs().ratio(ComparedPolicies.ANCHOR);
        TokenBatch trainable =
                alternative.corrections().missingOldLogProbs().trainable(input.tokens(), input.withoutOld());
        OptionalDouble cap = weighting.tokenCapOf(ComparedPolicies.ANCHOR);
        if (cap.isPresent() && left.trainedTokens() == trainable.trainedTokens()) {
            return KeptTokens.truncated(left, anchor, cap.getAsDouble());
        }
        float[] weights = new float[left.tokenCount()];
        List<StageReport> reports = weighting.compute(trainable, input.logProbs(), weights);
        return KeptTokens.weighted(
                left,
                anchor,
                weights,
                reports.stream().mapToLong(StageReport::getTokensChanged).sum());
    }

    /**
     * The batch as this alternative makes it.
     *
     * @param trajectories the run's, one for each entry
     * @param proximalVersions one for each: under which version the proximal log-probs are that this alternative saw
     */
    KeptBatch kept(
            LearnerBatch recorded,
            List<Trajectory> trajectories,
            long[] proximalVersions,
            BatchInput input,
            BatchVerdict verdict) {
        List<Trajectory> seen = new ArrayList<>();
        for (int s = 0; s < trajectories.size(); s++) {
            seen.add(seen(trajectories.get(s), proximalVersions[s], s, input));
        }
        return new KeptBatch(
                DecidedBatch.of(
                        new RunIdentity(recorded.getRunId(), recorded.getEpoch(), recorded.getPolicyId()),
                        recorded.getBatchId(),
                        recorded.getAssembledAtMs(),
                        recorded.getAssembledVersion(),
                        recorded.getEntries(),
                        recorded.getStages().subList(0, 1),
                        input,
                        verdict),
                seen);
    }

    /** A trajectory with the log-probs that this alternative saw, the weights that it makes of them, and its own report of that. */
    private Trajectory seen(Trajectory recorded, long proximalVersion, int sequence, BatchInput input) {
        int from = input.tokens().start(sequence);
        int to = input.tokens().end(sequence);
        byte[] mask = new byte[to - from];
        input.tokens().copyMask(from, mask, 0, mask.length);
        MemberLogProbs logProbs = new MemberLogProbs(
                Arrays.copyOfRange(input.logProbs().behavior(), from, to),
                Arrays.copyOfRange(input.logProbs().old(), from, to),
                Arrays.copyOfRange(input.logProbs().proximal(), from, to));
        boolean withoutOld = input.withoutOld()[sequence];
        float[] weights = new float[mask.length];
        List<StageReport> reports = weighting.compute(
                alternative
                        .corrections()
                        .missingOldLogProbs()
                        .trainable(new TokenBatch(new int[] {0, mask.length}, mask), new boolean[] {withoutOld}),
                logProbs,
                weights);
        return Trajectory.newBuilder(recorded)
                .setOldLogProbs(withoutOld ? null : PackedFloats.of(logProbs.old()))
                .setProximalLogProbs(PackedFloats.of(logProbs.proximal()))
                .setProximalVersion(proximalVersion)
                .setImportanceWeights(PackedFloats.of(weights))
                .setStages(reports)
                .build();
    }

    /** Who is masked. */
    private static final class Counted {
        private final SortedMap<Long, MaskedShare> byLag = new TreeMap<>();
        private final SortedMap<Long, MaskedShare> byLength = new TreeMap<>();
        private final SortedMap<Long, MaskedShare> bySign = new TreeMap<>();
        private MaskedShare sequences = MaskedShare.NONE;

        Counted(BatchInput input, BatchVerdict verdict) {
            TokenBatch own = input.tokens();
            for (int s = 0; s < own.sequenceCount(); s++) {
                if (own.trainedTokens(s) == 0) {
                    continue;
                }
                MaskedShare one = new MaskedShare(1, verdict.tokens().trainedTokens(s) == 0 ? 1 : 0);
                sequences = sequences.plus(one);
                byLength.merge(MaskBreakdown.classOf(own.end(s) - own.start(s)), one, MaskedShare::plus);
                bySign.merge((long) Math.signum(verdict.advantages()[s]), one, MaskedShare::plus);
                for (VersionSpan span : input.versions().spans(s)) {
                    int of = 0;
                    int left = 0;
                    for (int t = own.start(s) + span.start(); t < own.start(s) + span.end(); t++) {
                        of += own.trained(t);
                        left += verdict.tokens().trained(t); // of the trainable
                    }
                    byLag.merge(
                            MaskBreakdown.classOf(input.currentVersion() - span.version()),
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
