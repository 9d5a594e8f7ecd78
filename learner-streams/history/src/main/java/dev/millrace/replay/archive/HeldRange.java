package dev.millrace.replay.archive;

import java.util.ArrayList;
import java.util.List;

/**
 * Contents of an archive of some batches: batches, their trajectories and inputs, steps, every manifest, and available
 * weights.
 *
 * @param toVersion largest version of assembly
 * @param startVersion where the first batch's step began; -1 if no step is recorded
 * @param oldestWeights weights are here from this version to {@code newestWeights}; -1 if of none
 * @param newestWeights see {@code oldestWeights}
 * @param optimizerVersion with optimizer state, so that training can continue; -1 if of none
 * @param store of weights that are not here; empty if they were on the log
 */
public record HeldRange(
        long firstBatch,
        long lastBatch,
        long fromVersion,
        long toVersion,
        long startVersion,
        long oldestWeights,
        long newestWeights,
        long optimizerVersion,
        String store) {

    /** One sentence each. */
    public List<String> sentences() {
        List<String> all = new ArrayList<>();
        all.add(
                "it holds batches " + firstBatch + " to " + lastBatch + ", assembled against versions " + fromVersion
                        + " to " + toVersion
                        + ", with their trajectories, rollouts, scores and steps, their prompts as far as they were stored, and every version's manifest");
        all.add(
                !store.isEmpty()
                        ? "weights are not in it: they lie in " + store
                        : oldestWeights < 0
                                ? "weights are not in it: none of these versions was stored any more"
                                : "weights of versions " + oldestWeights + " to " + newestWeights + " are in it"
                                        + (optimizerVersion < 0
                                                ? "; no optimiser's state is, so training cannot continue from it"
                                                : ", and the optimiser's state of version " + optimizerVersion
                                                        + ", from which the first step began"));
        all.add("other corrections can be tried on it" + (optimizerVersion < 0 ? "" : ", and its steps retrained")
                + "; as recorded, a run is replayed from its beginning only");
        return all;
    }
}
