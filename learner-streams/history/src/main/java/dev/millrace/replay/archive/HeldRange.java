package dev.millrace.replay.archive;

import java.util.ArrayList;
import java.util.List;

/**
 * What an archive of some batches holds, so that everybody knows what can be asked of it: the batches with their trajectories
 * and what these were made from, the steps on them, every manifest, and versions as far as they were stored.
 *
 * @param firstBatch the first
 * @param lastBatch the last
 * @param fromVersion least version that one of them was assembled against
 * @param toVersion the largest
 * @param startVersion the version from which the step on the first batch began; -1 if no step on it was recorded
 * @param oldestWeights of the versions from here to {@code newestWeights} the weights are here; -1 if of none
 * @param newestWeights see {@code oldestWeights}
 * @param optimizerVersion the version whose optimiser's state is here, so that training can go on from it; -1 if of none
 * @param store where weights lie that are not here; empty if they were on the log
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

    /** For people, a sentence each. */
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
                                                ? "; no optimiser's state is, so training cannot go on from it"
                                                : ", and the optimiser's state of version " + optimizerVersion
                                                        + ", from which the first step began"));
        all.add("other corrections can be tried on it" + (optimizerVersion < 0 ? "" : ", and its steps be learnt again")
                + "; as recorded, a run is replayed from its beginning only");
        return all;
    }
}
