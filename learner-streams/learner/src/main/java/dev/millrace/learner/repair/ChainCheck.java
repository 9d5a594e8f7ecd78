package dev.millrace.learner.repair;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.List;

/** Whether the chain of versions and the training log tell the same story. */
final class ChainCheck {
    private final LogConnection connection;
    private final RunTopics topics;
    private final TrainingPast past;
    private final boolean hasLostFirstSteps;
    private final WaysOut ways;

    /** @param hasLostFirstSteps whether the training log no longer begins with the run's first step */
    ChainCheck(LogConnection connection, TrainingPast past, boolean hasLostFirstSteps, WaysOut ways) {
        this.connection = connection;
        this.topics = connection.topics();
        this.past = past;
        this.hasLostFirstSteps = hasLostFirstSteps;
        this.ways = ways;
    }

    List<Inconsistency> compare(LoadableVersions versions) {
        if (versions.tip().isEmpty()) {
            return withoutVersion();
        }
        PolicyVersion tip = versions.tip().get();
        long newest = tip.getVersion();
        List<Inconsistency> found = new ArrayList<>();
        if (past.newestVersion() > newest) {
            List<Way> out = new ArrayList<>();
            long due = tip.getBatchId() + 1;
            if (past.hasBatches(due, past.lastBatch())) {
                out.add(WaysOut.await("the learner learns batches " + due + " to " + past.lastBatch()
                        + " again, which gives the same weights"));
            }
            out.addAll(ways.newEpoch());
            found.add(new Inconsistency(
                    "versions-lost",
                    "the training log made version " + past.newestVersion() + ", and " + topics.policyVersions()
                            + " ends with version " + newest,
                    out));
        }
        boolean isFirstOfEpoch = tip.getParentEpoch() != null;
        if (!isFirstOfEpoch && past.lastBatch() < tip.getBatchId() && !(past.isEmpty() && hasLostFirstSteps)) {
            found.add(new Inconsistency(
                    "steps-lost",
                    "version " + newest + " was made from batch " + tip.getBatchId() + ", and " + topics.trainingLog()
                            + (past.isEmpty()
                                    ? " has no step of this epoch"
                                    : " ends with the step on batch " + past.lastBatch()),
                    List.of(WaysOut.await(
                            "training goes on; what became of the rollouts of these batches the ledger tells by the batches"
                                    + " alone"))));
        }
        if (!versions.unreadable().isEmpty()) {
            found.add(new Inconsistency("version-lost", versions.unreadable(), ways.newEpoch()));
        }
        return found;
    }

    private List<Inconsistency> withoutVersion() {
        if (connection.lineage().parent().isPresent() && past.isEmpty()) {
            Ancestor parent = connection.lineage().parent().get();
            return List.of(new Inconsistency(
                    "epoch-unfinished",
                    "epoch " + connection.run().epoch() + " was begun from version " + parent.version() + " of epoch "
                            + parent.epoch() + ", and its first version is not there",
                    ways.firstOfEpoch(parent.version())));
        }
        return past.isEmpty()
                ? List.of()
                : List.of(new Inconsistency(
                        "chain-lost",
                        topics.policyVersions() + " has no version of this epoch, and the training log made version "
                                + past.newestVersion()
                                + "; nothing on this log brings the weights back: import an archive of the run with millrace"
                                + " import, or begin another run",
                        ways.newEpoch()));
    }
}
