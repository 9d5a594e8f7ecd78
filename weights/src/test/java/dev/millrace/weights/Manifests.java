package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorLocation;
import java.util.List;

/** Manifests for tests that do not publish. */
final class Manifests {
    private Manifests() {}

    static PolicyVersion of(long version, TensorLocation weights) {
        return PolicyVersion.newBuilder()
                .setRunId(SmallDecoder.RUN.runId())
                .setEpoch(0)
                .setPolicyId(SmallDecoder.RUN.policyId())
                .setVersion(version)
                .setParentVersion(version - 1)
                .setBatchId(version - 1)
                .setShape(ShapeText.of(SmallDecoder.SHAPE))
                .setTokenizerHash("t")
                .setWeights(weights)
                .setOptimizerSteps(version)
                .setRolloutsConsumed(0)
                .setTokensTrained(0)
                .setPublishedAtMs(0)
                .build();
    }

    static PolicyVersion of(long version, String weightsHash) {
        return of(
                version,
                TensorLocation.newBuilder()
                        .setTopic("weights")
                        .setPartition(0)
                        .setFirstOffset(0)
                        .setLastOffset(0)
                        .setTensors(List.of())
                        .setSha256(weightsHash)
                        .build());
    }
}
