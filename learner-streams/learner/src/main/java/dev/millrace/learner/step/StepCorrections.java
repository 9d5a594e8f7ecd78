package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.proximal.ProximalApproximation;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.stages.BatchCorrections;
import dev.millrace.stages.BatchInput;
import dev.millrace.stages.BatchVerdict;
import dev.millrace.stages.CorrectionConfig;
import dev.millrace.stages.ImportanceWeighting;
import dev.millrace.stages.MemberLogProbs;
import dev.millrace.stages.MissingOldLogProbs;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The run's corrections at the start of a step: the topology's classes, fed with the log-probs and the version that the step
 * starts from.
 *
 * <p>Importance weights are made under the trajectories' own masks, the rest is decided over the whole batch, as the topology
 * does; what it decided about the batch is then only reported. Immutable and thread-safe.
 */
final class StepCorrections {
    private final BatchCorrections corrections;
    private final ImportanceWeighting weighting;
    private final MissingOldLogProbs missingOld;
    private final long maxVersions;

    StepCorrections(CorrectionConfig config) {
        this.corrections = new BatchCorrections(config);
        this.weighting = new ImportanceWeighting(config.rolloutCorrection());
        this.missingOld = config.missingOldLogProbs();
        this.maxVersions = config.staleness().maxVersions();
    }

    /**
     * The batch's own decisions; weights that its trajectories do not carry are made of what they do carry. What is staler
     * than the limit all the same when the step starts is masked, and reported.
     */
    StepDecision recorded(StepMembers members, long version) {
        LearnerBatch batch = members.batch().batch();
        float[] weights = members.weights().orElseGet(() -> weights(members));
        LateStaleness late = LateStaleness.of(members, maxVersions, version);
        return new StepDecision(
                late.left(),
                members.recordedAdvantages(),
                members.old(),
                members.proximal(),
                weights,
                late.stages(batch.getStages()),
                orNaN(batch.getEssRatio()),
                orNaN(batch.getEssRatioTruncated()),
                orNaN(batch.getSecondMoment()),
                batch.getStepScale(),
                late.maskedBy());
    }

    private static double orNaN(@Nullable Double value) {
        return value == null ? Double.NaN : value;
    }

    private float[] weights(StepMembers members) {
        float[] weights = new float[members.own().tokenCount()];
        weighting.compute(
                weighed(members), new MemberLogProbs(members.behavior(), members.old(), members.proximal()), weights);
        return weights;
    }

    /**
     * Decides anew.
     *
     * @param old      log-probs of the learner's engine at the versions that sampled
     * @param proximal the step's
     * @param rewards  one per member
     * @param version  the step starts from it
     */
    StepDecision decide(StepMembers members, float[] old, float[] proximal, double[] rewards, long version) {
        MemberLogProbs logProbs = new MemberLogProbs(members.behavior(), old, proximal);
        float[] weights = new float[proximal.length];
        List<StageReport> stages = new ArrayList<>(weighting.compute(weighed(members), logProbs, weights));
        BatchVerdict verdict = corrections.decide(new BatchInput(
                members.own(),
                logProbs,
                members.withoutOld(),
                rewards,
                members.versions(),
                members.proximalVersions(),
                members.agesMs(),
                version));
        stages.addAll(verdict.reports());
        return new StepDecision(
                verdict.tokens(),
                verdict.advantages(),
                old,
                proximal,
                weights,
                List.copyOf(stages),
                verdict.essRatio(),
                verdict.essRatioTruncated(),
                verdict.secondMoment(),
                verdict.stepScale(),
                verdict.maskedBy());
    }

    private TokenBatch weighed(StepMembers members) {
        return missingOld.trainable(members.own(), members.withoutOld());
    }

    /** Proximal log-probs with those of the members without old ones interpolated, if that is how they go on. */
    float[] recovered(StepMembers members, float[] proximal, float[] current, long version, StepMetricsTally means) {
        if (missingOld != MissingOldLogProbs.INTERPOLATE) {
            return proximal;
        }
        float[] recovered = proximal.clone();
        float[] between = interpolated(members, current, version);
        int sequences = 0;
        for (int s = 0; s < members.count(); s++) {
            if (members.withoutOld()[s]) {
                int start = members.own().start(s);
                System.arraycopy(between, start, recovered, start, members.own().length(s));
                sequences++;
            }
        }
        means.once(StepMetric.PROXIMAL_SEQUENCES_INTERPOLATED, sequences);
        return recovered;
    }

    /** A-3PO's proximal log-probs, between behavior and current by each token's age. */
    static float[] interpolated(StepMembers members, float[] current, long version) {
        int[] versions = new int[current.length];
        Arrays.fill(versions, ProximalApproximation.NOT_SAMPLED);
        BatchVersions sampledBy = members.versions();
        for (int s = 0; s < members.count(); s++) {
            for (VersionSpan span : sampledBy.spans(s)) {
                Arrays.fill(
                        versions,
                        members.own().start(s) + span.start(),
                        members.own().start(s) + span.end(),
                        Math.toIntExact(span.version()));
            }
        }
        float[] proximal = new float[current.length];
        ProximalApproximation.LOGLINEAR.compute(
                members.own(), members.behavior(), current, versions, Math.toIntExact(version), proximal);
        return proximal;
    }
}
