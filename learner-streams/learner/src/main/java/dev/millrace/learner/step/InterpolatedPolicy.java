package dev.millrace.learner.step;

import dev.millrace.corrections.ratio.ProximalApproximation;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import java.util.Arrays;

/** A-3PO's proximal log-probs of a batch, between behavior and current by each token's age. */
final class InterpolatedPolicy {
    private final float[] logProbs;

    /**
     * @param current log-probs of the step's starting weights
     * @param version which version those are
     */
    InterpolatedPolicy(StepMembers members, float[] current, long version) {
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
        this.logProbs = new float[current.length];
        ProximalApproximation.LOGLINEAR.compute(
                members.own(), members.behavior(), current, versions, Math.toIntExact(version), logProbs);
    }

    /** Of all members; shared. */
    float[] everywhere() {
        return logProbs;
    }

    /** Those of the members without old log-probs in the place of others; counted. */
    float[] whereOldIsMissing(StepMembers members, float[] others, StepMetricsTally means) {
        float[] recovered = others.clone();
        int sequences = 0;
        for (int s = 0; s < members.count(); s++) {
            if (members.withoutOld()[s]) {
                int start = members.own().start(s);
                System.arraycopy(
                        logProbs, start, recovered, start, members.own().length(s));
                sequences++;
            }
        }
        means.once(StepMetric.PROXIMAL_SEQUENCES_INTERPOLATED, sequences);
        return recovered;
    }
}
