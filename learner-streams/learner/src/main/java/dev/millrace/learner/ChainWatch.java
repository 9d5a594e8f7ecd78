package dev.millrace.learner;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.WeightsConfig;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Whether the log still has the chain of versions that a learner extends. Used by its thread. */
final class ChainWatch {
    private static final Logger LOG = LoggerFactory.getLogger(ChainWatch.class);

    private final LogConnection connection;
    private final WeightsConfig weightsConfig;

    ChainWatch(LogConnection connection, WeightsConfig weightsConfig) {
        this.connection = connection;
        this.weightsConfig = weightsConfig;
    }

    /**
     * Whether the version that was committed last is not to be had, though nothing failed: somebody has aborted its transaction on the
     * log, of which a producer is not told.
     *
     * @param limitNanos how long it may take to come
     */
    boolean isMissing(TrainingState state, RunningLog log, long limitNanos) {
        long version = state.newest().getVersion();
        if (log.feed().awaitNewerThan(version - 1, Duration.ofNanos(limitNanos)).isPresent()) {
            return false;
        }
        try (PolicyFeed whole = new PolicyFeed(connection, weightsConfig)) {
            boolean isMissing =
                    whole.newestCommitted().map(PolicyVersion::getVersion).orElse(-1L) < version;
            if (isMissing) {
                LOG.warn(
                        "version {} was committed, and {} does not have it, as where the log has lost its end, or an administrator aborted its transaction;"
                                + " begins again from what there is",
                        version,
                        connection.topics().policyVersions());
            }
            return isMissing;
        }
    }

    /**
     * Manifests that are not of the chain go to the dead letters, and their keys back to whom they belong.
     *
     * @return false if the newest version itself is not of the chain
     */
    boolean answerForeign(TrainingState state, RunningLog log) {
        if (log.foreign().isEmpty()) {
            return true;
        }
        PolicyVersion newest = state.newest();
        Optional<List<ProducerRecord<byte[], byte[]>>> records = log.foreign().answers(log.feed(), newest);
        if (records.isEmpty()) {
            LOG.warn(
                    "version {}, which this learner made, does not extend the chain that is on {} now; begins again from there",
                    newest.getVersion(),
                    connection.topics().policyVersions());
            return false;
        }
        if (!records.get().isEmpty()) {
            log.committer().commit("what is written because of foreign manifests", records.get());
        }
        return true;
    }
}
