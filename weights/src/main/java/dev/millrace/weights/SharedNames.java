package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import java.util.ArrayList;
import java.util.List;

/**
 * A manifest that has what it has in common with the one before it, the names, types and dimensions of its tensors, as the same
 * objects: of a thousand manifests that are kept, these would be more than half.
 */
final class SharedNames {
    private SharedNames() {}

    /** An equal manifest. */
    static PolicyVersion with(PolicyVersion manifest, PolicyVersion before) {
        return new PolicyVersion(
                same(manifest.getRunId(), before.getRunId()),
                manifest.getEpoch(),
                same(manifest.getPolicyId(), before.getPolicyId()),
                manifest.getVersion(),
                manifest.getParentVersion(),
                manifest.getBatchId(),
                same(manifest.getShape(), before.getShape()),
                same(manifest.getTokenizerHash(), before.getTokenizerHash()),
                with(manifest.getWeights(), before.getWeights()),
                manifest.getOptimizer() == null || before.getOptimizer() == null
                        ? manifest.getOptimizer()
                        : with(manifest.getOptimizer(), before.getOptimizer()),
                manifest.getOptimizerSteps(),
                manifest.getRolloutsConsumed(),
                manifest.getTokensTrained(),
                manifest.getPublishedAtMs(),
                manifest.getControls(),
                manifest.getParentEpoch(),
                manifest.getAdapter() == null || before.getAdapter() == null
                        ? manifest.getAdapter()
                        : same(manifest.getAdapter(), before.getAdapter()));
    }

    private static TensorLocation with(TensorLocation of, TensorLocation before) {
        List<TensorEntry> tensors = new ArrayList<>(of.getTensors().size());
        for (int i = 0; i < of.getTensors().size(); i++) {
            TensorEntry tensor = of.getTensors().get(i);
            tensors.add(
                    i < before.getTensors().size()
                            ? with(tensor, before.getTensors().get(i))
                            : tensor);
        }
        return new TensorLocation(
                same(of.getTopic(), before.getTopic()),
                of.getPartition(),
                of.getFirstOffset(),
                of.getLastOffset(),
                tensors,
                of.getSha256(),
                of.getBaseVersion(),
                of.getBaseSha256(),
                of.getAnchorVersion(),
                of.getUri());
    }

    private static TensorEntry with(TensorEntry tensor, TensorEntry before) {
        return new TensorEntry(
                same(tensor.getName(), before.getName()),
                same(tensor.getDtype(), before.getDtype()),
                same(tensor.getDims(), before.getDims()),
                tensor.getBytes(),
                tensor.getChunks(),
                same(tensor.getSha256(), before.getSha256()), // of one that did not change
                tensor.getEncoding(),
                tensor.getEncodedBytes());
    }

    private static <T> T same(T own, T other) {
        return own.equals(other) ? other : own;
    }
}
