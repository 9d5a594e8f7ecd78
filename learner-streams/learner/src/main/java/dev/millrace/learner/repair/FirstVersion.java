package dev.millrace.learner.repair;

import dev.millrace.learner.VersionCommitter;
import dev.millrace.log.LogConnection;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.util.Optional;

/**
 * The version that an epoch continues from. It is read from the older epoch, verified, and published as the epoch's
 * first version: whole, with the optimiser's state and the state of the step controls.
 *
 * @param optimizer its state after the step that made it
 */
public record FirstVersion(PolicyVersion manifest, Weights weights, AdamW.State optimizer) {

    /**
     * Reads a version of a run's past.
     *
     * @param connection to the log, in the epoch that the version is of or a later one that inherits it
     * @throws VersionUnavailableException if it is not there, or not with weights and optimiser's state
     */
    public static FirstVersion read(LogConnection connection, WeightsConfig config, int epoch, long version) {
        try (PolicyFeed feed = new PolicyFeed(of(connection, epoch), config.knowing(Integer.MAX_VALUE))) {
            Optional<PolicyVersion> newest = feed.newestCommitted();
            requireCheckpoint(feed, feed.manifest(version), newest);
            return new FirstVersion(feed.manifest(version), feed.load(version), feed.loadOptimizer(version));
        }
    }

    private static void requireCheckpoint(PolicyFeed feed, PolicyVersion wanted, Optional<PolicyVersion> newest) {
        if (Checkpoints.is(wanted)) {
            return;
        }
        long version = wanted.getVersion();
        String others =
                "version " + Checkpoints.atOrBefore(feed::manifest, version).getVersion();
        long after = version + 1;
        long last = newest.map(PolicyVersion::getVersion).orElse(version);
        while (after <= last && !Checkpoints.is(feed.manifest(after))) {
            after++;
        }
        throw new VersionUnavailableException("version " + version
                + " was published without the optimiser's state, which only some versions have (weights.checkpoint_every),"
                + " so no epoch can start from it; choose " + others
                + (after <= last ? " or version " + after : ""));
    }

    /**
     * Reads the version that an epoch continues from according to its claim.
     *
     * @throws VersionUnavailableException as {@link #read}, or if the version's weights differ from the claim
     */
    public static FirstVersion parentOf(LogConnection connection, WeightsConfig config) {
        Ancestor parent = connection.lineage().parent().orElseThrow();
        FirstVersion first = read(connection, config, parent.epoch(), parent.version());
        String found = first.manifest().getWeights().getSha256();
        if (!found.equals(parent.weightsSha256())) {
            throw new VersionUnavailableException("epoch " + connection.run().epoch() + " of run "
                    + connection.run().runId() + " was started from version " + parent.version() + " of epoch "
                    + parent.epoch() + " with the weights " + parent.weightsSha256() + ", and the log has "
                    + found);
        }
        return first;
    }

    /** The same log in the epoch itself or in one of its ancestors. */
    private static LogConnection of(LogConnection connection, int epoch) {
        EpochLineage lineage = connection.lineage();
        for (int i = 0;
                i < connection.lineage().ancestors().size()
                        && epoch < connection.run().epoch();
                i++) {
            Ancestor ancestor = connection.lineage().ancestors().get(i);
            lineage = lineage.ofParent();
            if (ancestor.epoch() == epoch) {
                break;
            }
        }
        RunIdentity run = new RunIdentity(
                connection.run().runId(), epoch, connection.run().policyId());
        return connection.at(run, lineage);
    }

    /**
     * Publishes it as the first of the epoch that the committer is of.
     *
     * @return its manifest
     */
    public PolicyVersion publish(VersionCommitter committer, long publishedAtMs) {
        return committer.commitInitial(VersionFacts.firstOfEpoch(manifest, publishedAtMs), weights, optimizer);
    }
}
