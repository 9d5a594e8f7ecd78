package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import dev.millrace.policy.weights.Weights;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;

/** The weights of the version that anchors KL, from the log. */
final class ReferencePolicy {
    private final LogConnection connection;
    private final WeightsConfig config;

    ReferencePolicy(LogConnection connection, WeightsConfig config) {
        this.connection = connection;
        this.config = config;
    }

    /**
     * Loads them into buffers of their own.
     *
     * @param newest the run's newest version
     * @throws IllegalArgumentException if there is no such version, or its weights are no longer kept
     */
    Weights weights(long version, long newest) {
        if (version > newest) {
            throw new IllegalArgumentException(
                    "kl.reference.version is " + version + ", but the run's newest version is " + newest
                            + "; choose one that exists, such as 0, the initial weights");
        }
        try (PolicyFeed feed = new PolicyFeed(connection, config)) {
            // a transaction is committed before its markers are in every log, so the version just published may not be
            // seen yet
            feed.awaitFirst(connection.patience(), () -> false);
            return feed.load(version);
        } catch (VersionUnavailableException e) {
            throw new IllegalArgumentException(
                    "kl.reference.version is " + version + ", whose weights cannot be had ("
                            + e.getMessage()
                            + "); keep weights longer, choose a version that is still there, or have the topology join"
                            + " reference scores (kl.reference.kind=recorded)",
                    e);
        }
    }
}
